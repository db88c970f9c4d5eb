// What TorchRec's planner chooses among: the ways to shard a table, and their shards.
#pragma once

#include <cstdint>
#include <string_view>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/task.h"

namespace neuroshard::torchrec {

/// In the order in which TorchRec's sharders enumerate them.
enum class ShardingType {
  data_parallel,      ///< whole on every device
  table_wise,         ///< whole on one device
  column_wise,        ///< columns cut evenly, on any devices
  table_column_wise,  ///< columns cut evenly, on one host
  row_wise,           ///< rows cut evenly over all devices, in order
  table_row_wise,     ///< rows cut evenly over the devices of one host
  grid_shard,         ///< columns cut evenly, the rows of each part over the devices of one host
};
inline constexpr int kNumShardingTypes = 7;
/// As TorchRec names it, e.g. "table_wise".
[[nodiscard]] std::string_view to_string(ShardingType type);

/// A shard's cost by TorchRec's estimate [ms].
struct Perf {
  double fwd_compute = 0.0;
  double fwd_comms = 0.0;
  double bwd_compute = 0.0;
  double bwd_comms = 0.0;

  [[nodiscard]] double total() const { return fwd_compute + bwd_compute + fwd_comms + bwd_comms; }
  Perf& operator+=(const Perf& other);
};

/// A shard's place in its table. Without rows: the table has fewer slices than devices.
struct ShardRange {
  std::int64_t row_offset = 0;
  std::int64_t num_rows = 0;
  std::int64_t column_offset = 0;
  std::int64_t num_columns = 0;
};

/// A table cut into blocks of columns, and each of them into slices of rows: all but the last ones
/// of equal size. By TorchRec's estimate all shards of an option cost the same, those without rows
/// too.
struct ShardingOption {
  int table = 0;  ///< index into Task::tables
  ShardingType type = ShardingType::table_wise;
  int num_slices = 1;  ///< of the rows; shard i is slice i % num_slices of block i / num_slices
  int num_shards = 1;  ///< of data_parallel, a copy for each device
  std::int64_t rows_per_slice = 0;
  std::int64_t columns_per_block = 0;
  Perf perf{};                     ///< of each shard
  double total_perf_ms = 0.0;      ///< of all shards
  WideBytes total_bytes = 0;       ///< likewise
  std::int64_t largest_bytes = 0;  ///< of a shard

  [[nodiscard]] ShardRange range(const Table& of, int shard) const;
  /// Memory of the shard, 0 of one without rows.
  [[nodiscard]] std::int64_t bytes(const Task& task, int shard) const;
  /// True if there is one shard for every device, in order.
  [[nodiscard]] bool is_uniform() const {
    return type == ShardingType::data_parallel || type == ShardingType::row_wise;
  }
};

}  // namespace neuroshard::torchrec
