// Brings samples of hosts of one kind that ran at different speeds to the speed of the first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/train/compute/compute_trainer.h"

namespace neuroshard {

/// The folders of `paths` in the order of their first files, and the median of measured over
/// predicted cost of each, relative to the first folder's own, by a bounded network that is trained
/// on the first folder alone. All samples tell of it, those that are kept for tests too: it is one
/// number. Throws InputError if there is one folder only, if one has no samples or the first has
/// too few to train on, and if one is a hundred times as fast or slow as the first.
[[nodiscard]] std::vector<FolderSpeed> folder_speeds(
    const std::vector<std::string>& paths, std::uint64_t seed, int num_threads,
    const std::function<void(const EpochStats&)>& on_epoch = {});

/// Divides the costs of `dataset`, which was loaded from `paths`, by the speeds that
/// `folder_speeds` found for these, and notes them in it.
void divide_by_speeds(ComputeDataset& dataset, const std::vector<std::string>& paths,
                      const std::vector<FolderSpeed>& speeds);

}  // namespace neuroshard
