// What the devices hold of a task's tables already, from an older plan, and what a new plan moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/device_transfer.h"
#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// A rectangle of a table that a device held: ranges of rows and of columns, without their ends.
struct HeldPart {
  int device = 0;
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  std::int64_t column_begin = 0;
  std::int64_t column_end = 0;
};

/// An older plan as a new task sees it. Tables are the same if their names and dimensions are; any
/// other table of the new task is new. Devices have their old numbers: those beyond the new task's
/// world size are gone. Only rows that a table has both then and now count: rows that it gained are
/// not there to be moved.
///
/// A shard on a device has **moved** the bytes that the device did not hold: the weights of the
/// elements that lay elsewhere, and 4 bytes of row-wise state for each row of which the device held
/// none of the shard's columns. Copies of a replicated table count on each device.
class PlacedBefore {
 public:
  /// `plan` must be valid for `old_task`. Keeps no reference to the arguments.
  PlacedBefore(const Task& old_task, const ShardingPlan& plan, const Task& task);

  /// Of a table of the new task, by device.
  [[nodiscard]] std::span<const HeldPart> held(int table) const { return held_[table]; }
  /// The number of first rows that the table had before; 0: it is new.
  [[nodiscard]] std::int64_t rows_before(int table) const { return rows_before_[table]; }
  [[nodiscard]] bool was_replicated(int table) const { return was_replicated_[table]; }
  [[nodiscard]] int old_world_size() const { return old_world_size_; }

  /// Bytes that the older plan placed, of what the new task still has: weights and state on all
  /// devices.
  [[nodiscard]] std::int64_t total_bytes() const { return total_bytes_; }

  [[nodiscard]] std::int64_t moved_bytes(const Shard& shard) const;
  /// Of a table that the new plan has on every device.
  [[nodiscard]] std::int64_t moved_bytes_of_copies(int table) const;
  [[nodiscard]] std::int64_t moved_bytes(const ShardingPlan& plan) const;

  /// The same bytes by pairs of devices, by sender, then by receiver. What several devices held
  /// comes from one on the receiver's host, or else from one that has sent least by then.
  [[nodiscard]] std::vector<DeviceTransfer> transfers(const ShardingPlan& plan) const;

 private:
  class TransferList;

  void add_transfers(const Shard& shard, TransferList& list) const;

  int old_world_size_;
  int world_size_;
  int local_world_size_;
  std::int64_t state_bytes_;  ///< of a row of a piece
  std::vector<std::int64_t> weight_bytes_;
  std::vector<std::int64_t> num_rows_;
  std::vector<std::int64_t> num_columns_;
  std::vector<std::int64_t> rows_before_;
  std::vector<bool> was_replicated_;
  std::vector<std::vector<HeldPart>> held_;
  std::int64_t total_bytes_ = 0;
};

}  // namespace neuroshard
