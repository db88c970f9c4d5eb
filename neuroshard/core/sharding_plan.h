// A sharding plan: which rows and columns of which table are on which device, which tables are on
// every device, and whether that is valid.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// A rectangle of a table, a range of its rows times a range of its columns; the unit that is
/// placed.
struct Shard {
  int table = 0;  ///< index into Task::tables
  std::int64_t column_offset = 0;
  std::int64_t num_columns = 0;
  int device = 0;
  std::int64_t row_offset = 0;
  std::int64_t num_rows = 0;  ///< 0: all rows of the table, `row_offset` is 0 then

  [[nodiscard]] bool has_all_rows() const { return num_rows == 0; }
  [[nodiscard]] std::int64_t rows_of(const Table& of) const {
    return has_all_rows() ? of.num_embeddings : num_rows;
  }

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Predicted (or measured) cost of one device in one iteration, milliseconds.
struct DeviceCost {
  double compute_ms = 0.0;
  /// Includes waiting for devices that start later and, at the end, the addition of partial sums.
  double forward_comm_ms = 0.0;
  double backward_comm_ms = 0.0;
  std::int64_t memory_bytes = 0;
  std::int64_t num_columns = 0;  ///< that it sends of each sample
  double all_reduce_ms = 0.0;    ///< of the gradients of replicated tables

  [[nodiscard]] double total_ms() const {
    return compute_ms + all_reduce_ms + forward_comm_ms + backward_comm_ms;
  }
};

struct PlanCost {
  double cost_ms = 0.0;  ///< max over devices of their total
  std::vector<DeviceCost> devices{};
};

struct ShardingPlan {
  std::vector<Shard> shards{};
  /// Tables that are whole on every device and have no shard: rising indices into Task::tables.
  std::vector<int> replicated_tables{};

  /// Shards that do not have all rows of their table.
  [[nodiscard]] std::int64_t num_row_slices() const;
  [[nodiscard]] bool has_row_slices() const { return num_row_slices() > 0; }
};

/// The shard as a piece of its table: of a slice, its rows, where the table has a row order, and
/// otherwise its share of them.
[[nodiscard]] Piece piece_of(const Task& task, const Shard& shard);

/// Samples of which each device looks up the rows of replicated tables: the largest share of a
/// batch that a device gets.
[[nodiscard]] std::int64_t replica_batch_size(const Task& task);

/// Bytes on each device; 2^63 - 1 where there are more.
[[nodiscard]] std::vector<std::int64_t> device_memory(const Task& task, const ShardingPlan& plan);

/// Bytes that each device gives to the all-reduce of the gradients of these tables, which are
/// replicated: rows x columns x 4 of all of them together, as each row has a gradient in fp32.
[[nodiscard]] double all_reduce_bytes(const Task& task, std::span<const int> replicated_tables);

/// Bytes that a device reads and writes when it adds up the partial sums of its samples after the
/// forward all-to-all: where R slices of rows have the same columns it reads R and writes one, in
/// fp32, for each sample of its share of the batch (replica_batch_size). 0 without slices of rows.
[[nodiscard]] double partial_sum_bytes(const Task& task, const ShardingPlan& plan);

/// Why the plan is not valid for its task, one line per violation; empty means valid: every element
/// of every table on exactly one device or the table on all of them, no cut that the task does not
/// allow, pieces at multiples of 4 columns, pins (Table::devices, Table::same_device_as) and memory
/// respected. Of a table that is cut into slices of rows, gaps and overlaps are told of each faulty
/// range of rows, of the first twenty where there are more.
[[nodiscard]] std::vector<std::string> violations(const Task& task, const ShardingPlan& plan);

/// The plan with its shards in the one canonical order (table, row offset, column offset).
void sort_shards(ShardingPlan& plan);

}  // namespace neuroshard
