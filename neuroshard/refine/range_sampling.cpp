// Options of sampling by a model's range.
#include "neuroshard/refine/range_sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/workload/generate/coverage_workload.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kSmallestBatch = 64;
constexpr std::int64_t kLargestBatch = 131'072;
/// Batch sizes of sets that are not measured.
constexpr int kUnmeasuredBatchSizes = 12;

}  // namespace

std::int64_t batch_size_within(const TrainedRange& range, std::int64_t batch_size) {
  return std::clamp(std::clamp(batch_size, kSmallestBatch, kLargestBatch), range.min_batch_size,
                    range.max_batch_size);
}

std::int64_t batch_size_at(const TrainedRange& range, double where) {
  const auto log = [&](std::int64_t batch_size) {
    return std::log2(static_cast<double>(batch_size_within(range, batch_size)));
  };
  const double low = log(range.min_batch_size);
  const double high = log(range.max_batch_size);
  return batch_size_within(
      range, static_cast<std::int64_t>(std::exp2(std::round(low + (high - low) * where))));
}

void keep_data_types(const TrainedRange& range, std::vector<Table>& tables) {
  const auto& types = range.data_types;
  for (Table& table : tables) {
    if (std::find(types.begin(), types.end(), table.data_type) == types.end()) {
      table.data_type = types.front();
    }
  }
}

ComputeSamplingOptions coverage_within(const TrainedRange& range, std::int64_t batch_size,
                                       Optimizer optimizer, std::uint64_t seed) {
  ComputeSamplingOptions sampling;
  sampling.workload = kCoverage;
  sampling.tables = find_workload(sampling.workload, seed).tables;
  keep_data_types(range, sampling.tables);
  std::erase_if(sampling.dims, [&](std::int64_t dim) {
    return dim < range.min_columns || dim > range.max_columns;
  });
  for (std::int64_t dim = 144; dim <= std::min<std::int64_t>(range.max_columns, 1024); dim += 16) {
    sampling.dims.push_back(dim);
  }
  if (sampling.dims.empty()) sampling.dims = {range.min_columns, range.max_columns};
  sampling.max_tables = std::max(range.max_pieces, 1);
  sampling.batch_size = batch_size;
  sampling.optimizer = optimizer;
  sampling.held_out_share = 0.0;
  sampling.seed = seed;
  sampling.sampling = SetSampling::coverage;
  return sampling;
}

ComputeDataset sets_within(const TrainedRange& range, int count, std::uint64_t seed) {
  std::vector<std::pair<std::int64_t, Optimizer>> kinds;
  for (int i = 0; i < kUnmeasuredBatchSizes; ++i) {
    const std::int64_t batch_size = batch_size_at(range, (i + 0.5) / kUnmeasuredBatchSizes);
    for (const Optimizer optimizer : range.optimizers) {
      const std::pair kind{batch_size, optimizer};
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
    }
  }
  std::vector<UnmeasuredSets> groups;
  for (std::size_t number = 0; number < kinds.size(); ++number) {
    const auto& [batch_size, optimizer] = kinds[number];
    const ComputeSamplingOptions sampling =
        coverage_within(range, batch_size, optimizer, mix64(seed) + number);
    UnmeasuredSets group;
    group.settings = {.batch_size = batch_size, .optimizer = optimizer};
    for (const Table& table : sampling.tables) {
      group.tables.push_back(table_statistics(table, batch_size));
    }
    const auto share = static_cast<std::size_t>(count);
    const std::size_t sets = share * (number + 1) / kinds.size() - share * number / kinds.size();
    for (std::size_t id = 0; id < sets; ++id) {
      group.sets.push_back(sample_pieces(sampling, static_cast<std::int64_t>(id)));
    }
    groups.push_back(std::move(group));
  }
  return dataset_of(groups, FeatureSchema::work);
}

}  // namespace neuroshard
