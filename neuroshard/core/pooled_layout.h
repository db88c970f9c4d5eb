// Where the pooled outputs of a plan's tables come from: which device sends which columns, and
// which of them are partial sums that the receiver adds up.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// Columns of a table's pooled output that the same pieces have.
struct PooledColumns {
  /// Where a piece's part of them lies among the columns that its device sends of each sample.
  struct Source {
    int device = 0;
    std::int64_t column = 0;
  };

  int table = 0;
  std::int64_t column_offset = 0;  ///< in the table's output; with several features, times these
  std::int64_t num_columns = 0;    ///< likewise
  /// One: the columns as they are. Several: the partial sums of slices of rows, by rows.
  std::vector<Source> sources{};
};

struct PooledLayout {
  /// Each device's shards, indices into the plan's, in the order in which its columns are.
  std::vector<std::vector<int>> shards;
  /// Columns that each device sends of a sample: of all its shards, side by side.
  std::vector<std::int64_t> columns;
  /// All columns of the tables that are not replicated, by table and by column.
  std::vector<PooledColumns> outputs;
};

/// The plan must be valid.
[[nodiscard]] PooledLayout pooled_layout(const Task& task, const ShardingPlan& plan);

}  // namespace neuroshard
