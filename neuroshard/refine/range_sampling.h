// Sets of pieces within what a model was trained on: what a calibration measures, and what it
// prices without measuring it.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/table.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/train/compute/compute_dataset.h"

namespace neuroshard {

/// Within the range, and no batches that are tiny or huge.
[[nodiscard]] std::int64_t batch_size_within(const TrainedRange& range, std::int64_t batch_size);

/// At `where`, 0 to 1, of the range's batch sizes on a logarithmic scale.
[[nodiscard]] std::int64_t batch_size_at(const TrainedRange& range, double where);

/// Gives tables of other data types the range's first.
void keep_data_types(const TrainedRange& range, std::vector<Table>& tables);

/// Of the coverage workload's tables, at columns and numbers of pieces of the range; nothing is
/// held out.
[[nodiscard]] ComputeSamplingOptions coverage_within(const TrainedRange& range,
                                                     std::int64_t batch_size, Optimizer optimizer,
                                                     std::uint64_t seed);

/// `count` sets that cover the range, of twelve batch sizes and each optimizer, with passes of up
/// to 10 GB; the same for the same seed.
[[nodiscard]] ComputeDataset sets_within(const TrainedRange& range, int count, std::uint64_t seed);

}  // namespace neuroshard
