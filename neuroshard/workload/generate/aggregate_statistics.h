// The accesses of one batch to all tables of a workload together.
#pragma once

#include <cstdint>
#include <span>

#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

/// Sums and shares over tables, in expectation (closed form).
struct AggregateStatistics {
  std::int64_t num_tables = 0;
  std::int64_t num_embeddings = 0;    ///< rows of all tables
  std::int64_t weight_bytes = 0;      ///< of all tables, without the optimizer's state
  double mean_pooling_factor = 0.0;   ///< unweighted, over tables
  double num_indices = 0.0;           ///< lookups of one batch
  double distinct_rows = 0.0;         ///< rows hit at least once
  ReuseHistogram share_of_rows{};     ///< of the distinct rows, by reuse bin
  ReuseHistogram share_of_indices{};  ///< of the lookups, by the reuse bin of the row they hit
};

/// All zero for no tables.
[[nodiscard]] AggregateStatistics aggregate_statistics(std::span<const Table> tables,
                                                       std::int64_t batch_size);

}  // namespace neuroshard
