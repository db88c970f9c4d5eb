// A sharding plan: which columns of which table are on which device, and whether that is valid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// A range of a table's columns; the unit that is placed.
struct Shard {
  int table = 0;  ///< index into Task::tables
  std::int64_t column_offset = 0;
  std::int64_t num_columns = 0;
  int device = 0;

  friend bool operator==(const Shard&, const Shard&) = default;
};

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

/// Bytes on each device; 2^63 - 1 where there are more.
[[nodiscard]] std::vector<std::int64_t> device_memory(const Task& task, const ShardingPlan& plan);

/// Why the plan is not valid for its task, one line per violation; empty means valid: every column
/// of every table on exactly one device, pieces at multiples of 4 columns, memory respected.
[[nodiscard]] std::vector<std::string> violations(const Task& task, const ShardingPlan& plan);

/// The plan with its shards in the one canonical order (table, column offset).
void sort_shards(ShardingPlan& plan);

}  // namespace neuroshard
