// Groups of tables that stay together, and where they may lie.
#include "neuroshard/core/table_pins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// Devices that a message names, of those of a table.
constexpr std::size_t kMostDevicesNamed = 8;

/// Their numbers; of many, the first ones, and "56 more".
std::vector<std::string> device_names(std::span<const int> devices) {
  std::vector<std::string> names;
  const bool is_long = devices.size() > kMostDevicesNamed + 1;
  for (const int device : is_long ? devices.first(kMostDevicesNamed) : devices) {
    names.push_back(fmt::to_string(device));
  }
  if (is_long) names.push_back(fmt::format("{} more", devices.size() - kMostDevicesNamed));
  return names;
}

std::vector<int> sorted(std::vector<int> devices) {
  std::sort(devices.begin(), devices.end());
  return devices;
}

/// Those in both; of no restriction, the other's.
std::vector<int> in_both(const std::vector<int>& a, const std::vector<int>& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

std::unordered_map<std::string_view, int> numbers_by_name(const Task& task) {
  std::unordered_map<std::string_view, int> numbers;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    numbers.emplace(task.tables[t].name, static_cast<int>(t));
  }
  return numbers;
}

/// Sets of tables that are joined two at a time.
class JoinedTables {
 public:
  explicit JoinedTables(std::size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }

  /// The first table of its set.
  int first(int table) {
    while (parents_[table] != table) table = parents_[table] = parents_[parents_[table]];
    return table;
  }

  void join(int a, int b) {
    const auto [low, high] = std::minmax({first(a), first(b)});
    parents_[high] = low;
  }

 private:
  std::vector<int> parents_;
};

/// The groups' tables, in the order of their first ones. Names that no table has relate nothing.
std::vector<std::vector<int>> tables_of_groups(const Task& task) {
  if (!has_groups(task)) return {};
  const auto numbers = numbers_by_name(task);
  JoinedTables joined(task.tables.size());
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const auto other = numbers.find(task.tables[t].same_device_as);
    if (other != numbers.end()) joined.join(static_cast<int>(t), other->second);
  }
  std::vector<std::vector<int>> sets(task.tables.size());
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    sets[joined.first(static_cast<int>(t))].push_back(static_cast<int>(t));
  }
  std::erase_if(sets, [](const std::vector<int>& set) { return set.size() < 2; });
  return sets;
}

void validate_devices(const Table& table, int world_size, const std::string& place) {
  for (std::size_t i = 0; i < table.devices.size(); ++i) {
    const int device = table.devices[i];
    if (device < 0 || device >= world_size) {
      throw InputError(fmt::format("{}.devices[{}]", place, i),
                       fmt::format("a device from 0 to {}", world_size - 1),
                       fmt::to_string(device));
    }
  }
  const std::vector<int> devices = sorted(table.devices);
  const auto twice = std::adjacent_find(devices.begin(), devices.end());
  if (twice != devices.end()) {
    throw InputError(place + ".devices", "each device once", fmt::format("{} twice", *twice));
  }
}

/// Some device is left for the group.
void validate_group(const Task& task, const std::vector<int>& tables) {
  std::vector<int> common;
  int last_restricting = -1;
  for (const int t : tables) {
    const std::vector<int> own = sorted(task.tables[t].devices);
    if (own.empty()) continue;
    std::vector<int> both = in_both(common, own);
    if (both.empty()) {
      throw InputError(fmt::format("tables[{}].devices", t),
                       fmt::format("one of [{}], as \"{}\" stays on one device with \"{}\"",
                                   fmt::join(device_names(common), ", "), task.tables[t].name,
                                   task.tables[last_restricting].name),
                       fmt::format("[{}]", fmt::join(device_names(own), ", ")));
    }
    common = std::move(both);
    last_restricting = t;
  }
}

}  // namespace

TablePins::TablePins(const Task& task) {
  const auto world_size = static_cast<std::size_t>(task.topology.world_size);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const std::vector<int>& devices = task.tables[t].devices;
    if (devices.empty() || devices.size() == world_size) continue;
    devices_.resize(task.tables.size());
    devices_[t] = sorted(devices);
  }
  for (std::vector<int>& tables : tables_of_groups(task)) {
    TableGroup group{std::move(tables), {}};
    group_of_.resize(task.tables.size(), -1);
    for (const int t : group.tables) {
      group_of_[t] = static_cast<int>(groups_.size());
      if (!devices_.empty()) group.devices = in_both(group.devices, devices_[t]);
    }
    if (!devices_.empty()) {
      for (const int t : group.tables) devices_[t] = group.devices;
    }
    groups_.push_back(std::move(group));
  }
}

const TableGroup* TablePins::group_of(int table) const {
  return group_of_.empty() || group_of_[table] < 0 ? nullptr : &groups_[group_of_[table]];
}

bool has_groups(const Task& task) {
  return std::any_of(task.tables.begin(), task.tables.end(),
                     [](const Table& table) { return !table.same_device_as.empty(); });
}

void validate_pins(const Task& task) {
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    if (task.tables[t].devices.empty()) continue;
    validate_devices(task.tables[t], task.topology.world_size, fmt::format("tables[{}]", t));
  }
  if (!has_groups(task)) return;
  const auto numbers = numbers_by_name(task);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const Table& table = task.tables[t];
    if (table.same_device_as.empty()) continue;
    const bool is_another =
        table.same_device_as != table.name && numbers.contains(table.same_device_as);
    if (!is_another) {
      throw InputError(fmt::format("tables[{}].same_device_as", t),
                       "the name of another table of the task",
                       fmt::format("\"{}\"{}", table.same_device_as,
                                   table.same_device_as == table.name ? ", the table's own" : ""));
    }
  }
  for (const std::vector<int>& tables : tables_of_groups(task)) validate_group(task, tables);
}

std::string reason_against_cut(const Task& task, const TablePins& pins, int table,
                               std::string_view cut) {
  if (const TableGroup* group = pins.group_of(table)) {
    const int other = group->tables[group->tables.front() == table ? 1 : 0];
    return fmt::format("it stays on one device with \"{}\"", task.tables[other].name);
  }
  if (cut == "replicas" && !pins.devices_of(table).empty()) {
    return fmt::format("it may only lie on {}", devices_text(pins.devices_of(table)));
  }
  return fmt::format("\"allow\" does not name \"{}\"", cut);
}

std::string devices_text(std::span<const int> devices) {
  if (devices.size() == 1) return fmt::format("device {}", devices.front());
  std::vector<std::string> names = device_names(devices);
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("devices {} and {}", fmt::join(names, ", "), last);
}

}  // namespace neuroshard
