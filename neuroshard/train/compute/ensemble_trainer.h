// The training of one ensemble on one split of a dataset.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "neuroshard/train/compute/compute_trainer.h"
#include "neuroshard/train/compute/device_scatter.h"

namespace neuroshard {

/// Of more training samples than these, one part of five decides how far to adapt: it is large, and
/// training takes long. What a model was trained on, it then knows hardly better than what it was
/// not.
inline constexpr std::size_t kManySamples = 600;

/// Counts the epochs of everything that is trained, on several threads, and reports them.
class EpochReport {
  using Clock = std::chrono::steady_clock;

 public:
  explicit EpochReport(const std::function<void(const EpochStats&)>& on_epoch)
      : on_epoch_(on_epoch), start_(Clock::now()) {}

  /// The epochs that are still to come, at the most.
  void expect(int epochs) { most_epochs_ = epochs_ + epochs; }

  void add(EpochStats stats) {
    const std::scoped_lock lock(mutex_);
    stats.epoch = ++epochs_;
    stats.most_epochs = most_epochs_;
    stats.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (on_epoch_) on_epoch_(stats);
  }

 private:
  const std::function<void(const EpochStats&)>& on_epoch_;
  const Clock::time_point start_;
  std::mutex mutex_;
  int epochs_ = 0;
  int most_epochs_ = 0;
};

/// The ensemble, trained on the split's training samples, which begins with the initial model's
/// networks where the options have one (and an adaptation). `unseen`: costs of planned sets by
/// trainings that did not see them; empty: there were none.
[[nodiscard]] ComputeTrainingResult train_ensemble(const ComputeDataset& dataset,
                                                   const ComputeTrainingOptions& options,
                                                   DatasetSplit split, EpochReport& report,
                                                   std::vector<PlannedCost> unseen = {});

/// The mean of |ln(predicted / measured)| over `left_out` by an ensemble that is trained in the
/// same way; the planned ones are added to `unseen`.
[[nodiscard]] double error_of_ensemble(const ComputeDataset& dataset,
                                       const ComputeTrainingOptions& options, DatasetSplit split,
                                       const std::vector<int>& left_out, EpochReport& report,
                                       std::vector<PlannedCost>& unseen);

}  // namespace neuroshard
