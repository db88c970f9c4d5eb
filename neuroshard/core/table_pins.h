// What users pin: the devices that a table may lie on, and the tables that stay together on one.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// Tables that lie whole on one device together: related by Table::same_device_as, directly or
/// through others.
struct TableGroup {
  std::vector<int> tables{};   ///< two or more, rising indices into Task::tables
  std::vector<int> devices{};  ///< on which all of them may lie, rising; empty: any
};

/// The pins of a task's tables. Of a task without pins, next to nothing is kept.
class TablePins {
 public:
  /// Keeps no reference to the task, which must be valid.
  explicit TablePins(const Task& task);

  /// In the order of their first tables.
  [[nodiscard]] const std::vector<TableGroup>& groups() const { return groups_; }
  /// The group that a table is in; nullptr: none. Valid as long as this.
  [[nodiscard]] const TableGroup* group_of(int table) const;

  /// Whether some table may not lie everywhere.
  [[nodiscard]] bool restricts_devices() const { return !devices_.empty(); }
  /// Devices on which a table's pieces may lie, rising; empty: any, also where all are named. Those
  /// of a group are the same for all its tables.
  [[nodiscard]] std::span<const int> devices_of(int table) const {
    if (devices_.empty()) return {};
    return devices_[table];
  }
  [[nodiscard]] bool permits(int table, int device) const {
    const std::span<const int> devices = devices_of(table);
    return devices.empty() || std::binary_search(devices.begin(), devices.end(), device);
  }

 private:
  std::vector<TableGroup> groups_;
  std::vector<int> group_of_;              ///< by table, -1: none; empty if there are no groups
  std::vector<std::vector<int>> devices_;  ///< by table; empty if no table restricts them
};

/// Whether some table stays with another.
[[nodiscard]] bool has_groups(const Task& task);

/// Throws InputError at the first table whose devices are not distinct ones of the topology, that
/// stays with itself or with a name that no table has, or whose group no device is left for. Table
/// names and topology must be valid.
void validate_pins(const Task& task);

/// Why a table may not have a cut, `"columns"`, `"rows"` or `"replicas"`, of which allowed_cuts
/// says that it may not: "it stays on one device with "b"", or what it is else. `pins` are the
/// task's.
[[nodiscard]] std::string reason_against_cut(const Task& task, const TablePins& pins, int table,
                                             std::string_view cut);

/// "device 3", "devices 0 and 3", "devices 0, 1 and 3"; of more than nine, "devices 0, 1, 2, 3, 4,
/// 5, 6, 7 and 56 more". Needs a device.
[[nodiscard]] std::string devices_text(std::span<const int> devices);

}  // namespace neuroshard
