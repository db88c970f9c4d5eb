// A communication cost model that was learned from measured or simulated all-to-alls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/collective_cost.h"
#include "neuroshard/cost/communication/communication_context.h"
#include "neuroshard/cost/communication/communication_cost_model.h"
#include "neuroshard/cost/communication/communication_network.h"

namespace neuroshard {

/// The name of a cluster whose costs were measured without naming it.
inline constexpr const char* kUnnamedCluster = "measured";

/// A cluster that a model was trained on.
struct TrainedCluster {
  /// Rates are the effective ones, and `devices_per_host` is the largest that it was trained on.
  Interconnect interconnect;
  std::string hardware;  ///< JSON object
  int min_world_size = 2;
  int max_world_size = 2;
  CollectiveWeights collectives{};  ///< of what was learned besides the all-to-alls
};

/// By the "kind" of the hardware.
[[nodiscard]] bool is_simulated(const TrainedCluster& cluster);

/// The origin of a communication model and the data that it was trained on.
struct CommunicationModelInfo {
  std::string name;
  std::vector<TrainedCluster> clusters;
  std::int64_t min_batch_size = 1;
  std::int64_t max_batch_size = 1;
  std::string data_sha256;
  /// Of the data of all-reduces and partial sums, if they were others; may be empty.
  std::string collectives_sha256;
  std::string model_sha256;  ///< of the file; empty for a model that is not from one
  std::map<std::string, double> metrics;
};

/// The learned costs of one of the clusters of a model. Immutable; threads may share it.
/// A plan's predicted cost never falls when columns are added to a device or when one computes
/// longer (communication_network.h says why). Clusters of more devices than the model knows are
/// priced by the links alone, as the analytic model would: `outside_range` says so.
class NeuralCommunicationModel : public CommunicationCostModel {
 public:
  /// `cluster` is an index into the info's clusters.
  NeuralCommunicationModel(std::shared_ptr<const CommunicationNetwork> network,
                           CommunicationModelInfo info, std::size_t cluster);

  /// The interconnect's.
  [[nodiscard]] std::string name() const override { return cluster().interconnect.name; }
  /// Whether the cluster is.
  [[nodiscard]] bool is_simulated() const override { return is_simulated_; }
  void forward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
               std::span<const double> start_ms, std::span<double> forward_ms) const override;
  void backward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
                std::span<double> backward_ms) const override;
  /// As learned for the cluster, or else by the links' rates.
  [[nodiscard]] double all_reduce_ms(const Topology& topology, double bytes) const override;
  /// As learned for the cluster, or else by the rate of its devices' memory: that of the preset of
  /// its name, if there is one.
  [[nodiscard]] double partial_sums_ms(double bytes) const override;
  [[nodiscard]] bool knows_all_reduces() const override {
    return !cluster().collectives.all_reduce.empty();
  }
  [[nodiscard]] bool knows_partial_sums() const override {
    return !cluster().collectives.partial_sums.empty();
  }
  /// Twice the time that the device's own messages take on its links.
  [[nodiscard]] double floor_ms(const Topology& topology, std::int64_t batch_size,
                                double columns) const override;
  /// By the link schedule alone: no all-to-all is predicted to be faster.
  [[nodiscard]] double least_cost_ms(const Topology& topology, std::int64_t batch_size,
                                     std::span<const double> compute_ms,
                                     std::span<const double> columns) const override;
  [[nodiscard]] const Interconnect* links() const override { return &cluster().interconnect; }
  [[nodiscard]] std::vector<std::string> outside_range(const Task& task) const override;

  [[nodiscard]] const CommunicationModelInfo& info() const { return info_; }
  [[nodiscard]] const CommunicationNetwork& network() const { return *network_; }
  [[nodiscard]] const std::shared_ptr<const CommunicationNetwork>& shared_network() const {
    return network_;
  }
  [[nodiscard]] const TrainedCluster& cluster() const { return info_.clusters[cluster_]; }

 private:
  [[nodiscard]] bool is_known(const Topology& topology) const;
  /// Valid until the thread's next call, of any model.
  [[nodiscard]] const MixtureWeights& weights(const Topology& topology, AllToAll direction) const;

  std::shared_ptr<const CommunicationNetwork> network_;
  CommunicationModelInfo info_;
  std::size_t cluster_;
  bool is_simulated_;
  double memory_gb_per_s_;
};

}  // namespace neuroshard
