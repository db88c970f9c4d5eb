// How far to adapt a model: the way that predicts best what it was not trained on.
#pragma once

#include <span>
#include <vector>

#include "neuroshard/train/compute/compute_trainer.h"
#include "neuroshard/train/compute/device_scatter.h"
#include "neuroshard/train/compute/ensemble_trainer.h"

namespace neuroshard {

/// An adaptation, and what a training by it makes of planned sets that it does not see.
struct TriedAdaptation {
  Adaptation adaptation;
  std::vector<PlannedCost> unseen;
};

/// The one of `adaptations` that predicts best what it was not trained on: five parts of the
/// training samples, of more than kManySamples one, are left out, and their sets are predicted.
[[nodiscard]] TriedAdaptation best_adaptation(const ComputeDataset& dataset,
                                              ComputeTrainingOptions options,
                                              const DatasetSplit& split, EpochReport& report,
                                              std::span<const Adaptation> adaptations);

}  // namespace neuroshard
