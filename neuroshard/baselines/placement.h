// Parts that the baselines share: devices by load with memory respected, refusals, and the final
// price.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The memory that is left on each device, and which tables may go where: of tables that stay
/// together, the first that is placed takes the memory of all, and the others follow it.
class DeviceRooms {
 public:
  /// Keeps a reference to the task.
  explicit DeviceRooms(const Task& task);

  [[nodiscard]] int num_devices() const { return static_cast<int>(rooms_.size()); }
  /// Whether a piece of `bytes` bytes of the table may go to the device, which has room for it.
  [[nodiscard]] bool has_room(int table, std::int64_t bytes, int device) const;
  void take(int table, std::int64_t bytes, int device);
  /// Of a device on which the table may lie.
  [[nodiscard]] std::int64_t most_room(int table) const;

 private:
  /// Bytes that a piece of the table takes: 0 if its group has taken them.
  [[nodiscard]] std::int64_t bytes_to_take(int table, std::int64_t bytes) const;

  const Task& task_;
  TablePins pins_;
  std::vector<std::int64_t> rooms_;
  std::vector<int> placed_on_;  ///< by table, of those that stay with others; -1: not yet
};

/// Devices ordered by a load that the caller adds up, each with the memory that is left on it.
class LeastLoadedDevices {
 public:
  /// Keeps a reference to the task.
  explicit LeastLoadedDevices(const Task& task);

  /// Takes the device of lowest load (the lowest index among equals) that has room for `bytes` of
  /// the table and on which it may lie, adds `load` to it, and returns its index; -1 if there is
  /// none.
  int place(int table, std::int64_t bytes, double load);

  /// Of a device on which the table may lie.
  [[nodiscard]] std::int64_t most_room(int table) const { return rooms_.most_room(table); }

 private:
  DeviceRooms rooms_;
  std::set<std::pair<double, int>> by_load_;
};

/// Bytes of a whole table of the task.
[[nodiscard]] std::int64_t table_bytes(const Task& task, int table);

/// Of the tables that a table stays with, itself among them, or of itself; saturated.
[[nodiscard]] std::int64_t group_bytes(const Task& task, const TablePins& pins, int table);

/// The whole table on one device.
[[nodiscard]] Shard whole_table(const Task& task, int table, int device);

/// " on devices 0 and 3, where alone it may lie,"; empty if the table may lie on any.
[[nodiscard]] std::string only_devices_text(const TablePins& pins, int table);

/// "<planner>: no device has room for ... of table ..., which need ...; the most room left is ...",
/// with the devices on which the table may lie and the tables that it stays with, if it is pinned.
[[nodiscard]] InfeasibleError no_room(std::string_view planner, const Task& task, int table,
                                      std::int64_t num_columns, std::int64_t most_room);

/// The plan in canonical order with its price, and the time since `start`.
[[nodiscard]] PlanningResult priced(const Simulator& simulator, ShardingPlan plan,
                                    std::chrono::steady_clock::time_point start);

}  // namespace neuroshard
