// Brings samples of hosts of one kind that ran at different speeds to the speed of the first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neuroshard/train/compute/compute_dataset.h"
#include "neuroshard/train/compute/compute_trainer.h"

namespace neuroshard {

/// The folders of `paths`, which `dataset` was loaded from, in the order of their first files, and
/// how their costs compare with the first folder's. Of a folder with the same reference sets as one
/// that is compared already, it is that one's. Of one that has at least 30 sets in common
/// with folders that are compared already, it is the median of these sets' ratios; of the others,
/// the largest first, it is the median of measured over predicted cost, relative to the same of
/// those, by a bounded network that is trained on those. All samples tell of it, those that are
/// kept for tests too: it is one number. Throws InputError if there is one folder only, if one has
/// no samples or too few are there to train on, and if one is a hundred times as fast or slow as
/// the first.
[[nodiscard]] std::vector<FolderSpeed> folder_speeds(
    const ComputeDataset& dataset, const std::vector<std::string>& paths, std::uint64_t seed,
    int num_threads, const std::function<void(const EpochStats&)>& on_epoch = {});

/// Divides the costs of `dataset`, which was loaded from `paths`, by the speeds that
/// `folder_speeds` found for these, and notes them in it.
void divide_by_speeds(ComputeDataset& dataset, const std::vector<std::string>& paths,
                      const std::vector<FolderSpeed>& speeds);

}  // namespace neuroshard
