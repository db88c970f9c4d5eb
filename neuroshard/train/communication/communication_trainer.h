// Trains a communication cost model on measured or simulated all-to-alls, and tests it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/train/communication/communication_dataset.h"
#include "neuroshard/train/communication/communication_metrics.h"
#include "neuroshard/train/training_loop.h"

namespace neuroshard {

struct CommunicationTrainingOptions {
  TrainingLoopOptions loop{.epochs = 300, .batch_size = 256, .learning_rate = 3e-3};
  std::uint64_t seed = 0;  ///< of the split, the first weights and the order of samples
  int num_threads = 0;     ///< <= 0: one per core; the result does not depend on it
  std::string name;        ///< of the model
};

struct CommunicationTrainingResult {
  std::shared_ptr<const CommunicationNetwork> network;
  CommunicationModelInfo info;
  int best_epoch = 0;
  std::vector<EpochStats> epochs;
  CommunicationMetrics training;
  CommunicationMetrics validation;
  CommunicationMetrics unseen_placements;  ///< of the clusters and sizes trained on
  CommunicationMetrics held_out;           ///< the held-out files: other sizes, other clusters
  /// The clusters of the held-out files' all-to-alls, of which `info` may have none.
  std::vector<TrainedCluster> held_out_clusters;
  /// The same two metrics of the link schedule alone, without the network.
  CommunicationMetrics links_unseen_placements;
  CommunicationMetrics links_held_out;
  CollectiveFit collectives;  ///< if there are lines of all-reduces or partial sums
  double seconds = 0.0;
};

/// A model whose all-to-alls stay as they are: with what the files say of all-reduces and partial
/// sums. Throws InputError if the dataset has all-to-alls, no lines of the others, or lines of a
/// cluster that the model does not have.
struct ExtendedCommunicationModel {
  CommunicationModelInfo info;
  CollectiveFit collectives;
};
[[nodiscard]] ExtendedCommunicationModel extend_communication_model(
    const CommunicationModelInfo& model, const CommunicationDataset& dataset,
    const CommunicationDataset& held_out, std::uint64_t seed);

/// `held_out` is only tested on. Bit-reproducible on one machine. Lines of all-reduces and partial
/// sums are fitted separately from the network (fit_collectives). Throws InputError if there are
/// too few samples to split, and for lines of a cluster without all-to-alls.
[[nodiscard]] CommunicationTrainingResult train_communication_model(
    const CommunicationDataset& dataset, const CommunicationDataset& held_out,
    const CommunicationTrainingOptions& options,
    const std::function<void(const EpochStats&)>& on_epoch = {});

}  // namespace neuroshard
