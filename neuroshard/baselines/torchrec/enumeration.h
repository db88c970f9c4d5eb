// Every table's sharding options with their estimates: TorchRec's EmbeddingEnumerator.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/baselines/torchrec/perf_estimate.h"
#include "neuroshard/baselines/torchrec/sharding_option.h"
#include "neuroshard/core/task.h"

namespace neuroshard::torchrec {

/// The options of each table, in the order of the sharding types; table-wise is always one.
using SearchSpace = std::vector<std::vector<ShardingOption>>;

/// Those types that task and table allow: column_wise and table_column_wise cut columns, row_wise
/// and table_row_wise rows, grid_shard both, data_parallel replicates. A type is left out where
/// another is the same: all but table_wise on one device, those of one host on hosts of one device.
///
/// Columns are cut, as in TorchRec, into blocks of the least divisor of the dimension that is a
/// multiple of 4 and at least `min_partition` (and the table's `min_shard_columns`): one block if
/// there is none. Rows are cut into slices of ceil(rows / devices), so that the last may be shorter
/// or have no rows; a type is left out if that makes one of fewer rows than `min_shard_rows`.
[[nodiscard]] SearchSpace enumerate(const Task& task, std::int64_t min_partition,
                                    const MachineConstants& constants);

}  // namespace neuroshard::torchrec
