// A sharding plan: which columns of which table are on which device, and whether that is valid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// A cut is at a multiple of this many columns, and no piece is narrower.
inline constexpr std::int64_t kColumnGranularity = 4;

/// A range of a table's columns; the unit that is placed.
struct Shard {
  int table = 0;  ///< index into Task::tables
  std::int64_t column_offset = 0;
  std::int64_t num_columns = 0;
  int device = 0;

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// True if a table of this dimension may be cut at all. A dimension that is no multiple of 4
/// stays whole.
[[nodiscard]] constexpr bool can_cut(std::int64_t embedding_dim) {
  return embedding_dim % kColumnGranularity == 0 && embedding_dim >= 2 * kColumnGranularity;
}

/// The fewest columns that a piece of a table which is cut may have.
[[nodiscard]] constexpr std::int64_t narrowest_cut(const Table& table) {
  const std::int64_t least = table.min_shard_columns + kColumnGranularity - 1;
  return least < 2 * kColumnGranularity ? kColumnGranularity
                                        : least / kColumnGranularity * kColumnGranularity;
}

/// True if a piece of so many columns may be cut in two.
[[nodiscard]] constexpr bool can_cut(const Table& table, std::int64_t num_columns) {
  return can_cut(table.embedding_dim) && num_columns >= 2 * narrowest_cut(table);
}

/// Columns of a piece's pooled output: its own, once for every feature of the table.
[[nodiscard]] constexpr std::int64_t pooled_columns(const Table& table, std::int64_t num_columns) {
  return num_columns * table.num_features;
}

/// Bytes of one row of a piece: its weights and its share of the optimizer's state (none for SGD;
/// row-wise Adagrad keeps one fp32 per row of each column piece).
[[nodiscard]] constexpr std::int64_t row_bytes(const Table& table, std::int64_t num_columns,
                                               Optimizer optimizer) {
  return num_columns * element_bytes(table.data_type) +
         (optimizer == Optimizer::rowwise_adagrad ? 4 : 0);
}

/// Bytes of a piece on its device, with what it takes beyond its rows.
[[nodiscard]] constexpr std::int64_t shard_bytes(const Table& table, std::int64_t num_columns,
                                                 Optimizer optimizer) {
  return table.num_embeddings * row_bytes(table, num_columns, optimizer) +
         table.extra_bytes_per_shard + table.extra_bytes_per_column * num_columns;
}

/// Predicted (or measured) cost of one device in one iteration, milliseconds.
struct DeviceCost {
  double compute_ms = 0.0;
  double forward_comm_ms = 0.0;  ///< includes waiting for devices that start later
  double backward_comm_ms = 0.0;
  std::int64_t memory_bytes = 0;
  std::int64_t num_columns = 0;

  [[nodiscard]] double total_ms() const { return compute_ms + forward_comm_ms + backward_comm_ms; }
};

struct PlanCost {
  double cost_ms = 0.0;  ///< max over devices of their total
  std::vector<DeviceCost> devices{};
};

struct ShardingPlan {
  std::vector<Shard> shards{};
};

/// Bytes on each device.
[[nodiscard]] std::vector<std::int64_t> device_memory(const Task& task, const ShardingPlan& plan);

/// Why the plan is not valid for its task, one line per violation; empty means valid: every column
/// of every table on exactly one device, pieces at multiples of 4 columns, memory respected.
[[nodiscard]] std::vector<std::string> violations(const Task& task, const ShardingPlan& plan);

/// The plan with its shards in the one canonical order (table, column offset).
void sort_shards(ShardingPlan& plan);

}  // namespace neuroshard
