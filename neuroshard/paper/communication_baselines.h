// The errors of the published networks and of the analytic model on the same all-to-alls.
#pragma once

#include <cstdint>
#include <functional>

#include "neuroshard/train/communication/communication_dataset.h"
#include "neuroshard/train/communication/communication_metrics.h"
#include "neuroshard/train/training_loop.h"

namespace neuroshard {

struct CommunicationBaselineOptions {
  /// The paper's Adam 1e-3 and batch 512; it gives no number of epochs.
  TrainingLoopOptions loop{
      .epochs = 1000, .batch_size = 512, .learning_rate = 1e-3, .cosine = false};
  std::uint64_t seed = 0;  ///< of the split: the one that `train_communication_model` makes of it
  int num_threads = 0;     ///< <= 0: one per core; the result does not depend on it
};

struct CommunicationBaselines {
  /// AnalyticCommunicationModel of the presets with the clusters' names;
  /// clusters without one are left out.
  CommunicationMetrics analytic_unseen_placements;
  CommunicationMetrics analytic_held_out;
  /// NeuroShard 2023: for every cluster, number of devices and direction a network of its own
  /// (128, 64, 32, 16; ReLU), squared error, from the devices' bytes and starts to all their times.
  /// It has no answer for other clusters.
  CommunicationMetrics published_unseen_placements;
  int published_networks = 0;
  double seconds = 0.0;
};

/// `on_network` is called as each network is done, with how many there will be.
[[nodiscard]] CommunicationBaselines communication_baselines(
    const CommunicationDataset& dataset, const CommunicationDataset& held_out,
    const CommunicationBaselineOptions& options,
    const std::function<void(int done, int all)>& on_network = {});

}  // namespace neuroshard
