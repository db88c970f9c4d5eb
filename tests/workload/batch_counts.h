// Helper: counts the hits of a table's rows in drawn batches.
#pragma once

#include <unordered_map>

#include "neuroshard/workload/reuse/index_batch.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "tests/core/reuse_bin.h"

namespace neuroshard {

/// The statistics of a drawn batch, counted.
inline ReuseStatistics count_reuse(const IndexBatch& batch) {
  std::unordered_map<std::int64_t, std::int64_t> counts;
  counts.reserve(batch.indices.size());
  for (const std::int64_t index : batch.indices) ++counts[index];
  ReuseStatistics statistics;
  statistics.num_indices = static_cast<double>(batch.indices.size());
  statistics.distinct_rows = static_cast<double>(counts.size());
  for (const auto& [row, count] : counts) {
    statistics.rows[reuse_bin(count)] += 1.0;
    statistics.indices[reuse_bin(count)] += static_cast<double>(count);
  }
  return statistics;
}

}  // namespace neuroshard
