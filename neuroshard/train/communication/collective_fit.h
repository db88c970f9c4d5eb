// Weights of the terms that all-reduces and additions of partial sums cost, fitted to measured or
// simulated ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/io/communication_costs_io.h"
#include "neuroshard/train/metrics.h"

namespace neuroshard {

/// A line of a file of costs.
struct CollectiveObservation {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string cluster;
  Interconnect interconnect;
  Topology topology;
  bool is_simulated = false;  ///< has no memory, and no terms of it
  double bytes = 0.0;
  double ms = 0.0;  ///< of the slowest device
};

/// Of the lines of one kind.
struct CollectiveMetrics {
  CollectiveKind kind = CollectiveKind::all_reduce;
  PredictionMetrics training;
  PredictionMetrics unseen;        ///< a fifth of the lines, kept from the fit
  PredictionMetrics held_out;      ///< the held-out files: other sizes, other clusters
  PredictionMetrics links_unseen;  ///< of the links' or the memory's rates alone, on `unseen`
};

struct CollectiveFit {
  std::map<std::string, CollectiveWeights> clusters;  ///< of each cluster its own
  std::vector<CollectiveMetrics> metrics;             ///< of each kind that there are lines of
};

/// The non-negative weights with the least squares of relative errors, for each cluster and kind;
/// clusters that are held out alone get those of all clusters together. Throws InputError for fewer
/// than 10 lines of a kind from a cluster.
[[nodiscard]] CollectiveFit fit_collectives(const std::vector<CollectiveObservation>& training,
                                            const std::vector<CollectiveObservation>& held_out,
                                            std::uint64_t seed);

/// Puts the weights into the clusters of these names, and the metrics to the others:
/// "all_reduce.unseen.mape" and so on.
void add_to_model(const CollectiveFit& fit, CommunicationModelInfo& info);

}  // namespace neuroshard
