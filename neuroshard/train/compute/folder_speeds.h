// Brings samples of hosts of one kind that ran at different speeds to the speed of the first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/train/compute/compute_trainer.h"

namespace neuroshard {

/// The folders of `paths` in the order of their first files, and the median of measured over
/// predicted cost of each by a network that is trained on the first folder alone, relative to that
/// folder's own. Samples of all parts of a split tell of it, as a speed is one number. Throws InputError if there is one folder
/// only, and what training does.
[[nodiscard]] std::vector<FolderSpeed> folder_speeds(
    const std::vector<std::string>& paths, const ComputeTrainingOptions& options,
    const std::function<void(const EpochStats&)>& on_epoch = {});

/// Divides the costs of `dataset`, which was loaded from `paths`, by their folders' speeds, and
/// notes these in it.
void divide_by_speeds(ComputeDataset& dataset, const std::vector<std::string>& paths,
                      const std::vector<FolderSpeed>& speeds);

}  // namespace neuroshard
