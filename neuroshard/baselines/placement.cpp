// Devices by load with memory respected, refusals, and the final price.
#include "neuroshard/baselines/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

DeviceRooms::DeviceRooms(const Task& task)
    : task_(task), pins_(task), rooms_(task.topology.memory_bytes) {
  if (!pins_.groups().empty()) placed_on_.resize(task.tables.size(), -1);
}

std::int64_t DeviceRooms::bytes_to_take(int table, std::int64_t bytes) const {
  const TableGroup* group = pins_.group_of(table);
  if (group == nullptr) return bytes;
  return placed_on_[group->tables.front()] < 0 ? group_bytes(task_, pins_, table) : 0;
}

bool DeviceRooms::has_room(int table, std::int64_t bytes, int device) const {
  const TableGroup* group = pins_.group_of(table);
  const int chosen = group == nullptr ? -1 : placed_on_[group->tables.front()];
  if (chosen >= 0) return device == chosen;
  return pins_.permits(table, device) && rooms_[device] >= bytes_to_take(table, bytes);
}

void DeviceRooms::take(int table, std::int64_t bytes, int device) {
  rooms_[device] -= bytes_to_take(table, bytes);
  if (const TableGroup* group = pins_.group_of(table)) placed_on_[group->tables.front()] = device;
}

std::int64_t DeviceRooms::most_room(int table) const {
  std::int64_t most = 0;
  for (int device = 0; device < num_devices(); ++device) {
    if (pins_.permits(table, device)) most = std::max(most, rooms_[device]);
  }
  return most;
}

LeastLoadedDevices::LeastLoadedDevices(const Task& task) : rooms_(task) {
  for (int d = 0; d < rooms_.num_devices(); ++d) by_load_.emplace_hint(by_load_.end(), 0.0, d);
}

int LeastLoadedDevices::place(int table, std::int64_t bytes, double load) {
  const auto found = std::find_if(by_load_.begin(), by_load_.end(), [&](const auto& entry) {
    return rooms_.has_room(table, bytes, entry.second);
  });
  if (found == by_load_.end()) return -1;
  auto node = by_load_.extract(found);
  const int device = node.value().second;
  rooms_.take(table, bytes, device);
  node.value().first += load;
  by_load_.insert(std::move(node));
  return device;
}

std::int64_t table_bytes(const Task& task, int table) {
  return shard_bytes(task.tables[table], task.tables[table].embedding_dim, task.optimizer);
}

std::int64_t group_bytes(const Task& task, const TablePins& pins, int table) {
  const TableGroup* group = pins.group_of(table);
  if (group == nullptr) return table_bytes(task, table);
  std::int64_t bytes = 0;
  for (const int member : group->tables) bytes = add_saturated(bytes, table_bytes(task, member));
  return bytes;
}

Shard whole_table(const Task& task, int table, int device) {
  return {.table = table, .num_columns = task.tables[table].embedding_dim, .device = device};
}

std::string only_devices_text(const TablePins& pins, int table) {
  const auto permitted = pins.devices_of(table);
  if (permitted.empty()) return "";
  return fmt::format(" on {}, where alone it may lie,", devices_text(permitted));
}

InfeasibleError no_room(std::string_view planner, const Task& task, int table,
                        std::int64_t num_columns, std::int64_t most_room) {
  const Table& of = task.tables[table];
  const TablePins pins(task);
  const TableGroup* group = pins.group_of(table);
  const std::int64_t bytes = group != nullptr ? group_bytes(task, pins, table)
                                              : shard_bytes(of, num_columns, task.optimizer);
  const char* others = group != nullptr ? " and all that stay with it" : "";
  const bool whole = num_columns == of.embedding_dim;
  return InfeasibleError(
      fmt::format("{}: no device has room for {} table \"{}\"{} of {}; the most room left{} is {}",
                  planner, whole ? "the whole" : fmt::format("{} columns of", num_columns), of.name,
                  others, format_bytes(static_cast<double>(bytes)), only_devices_text(pins, table),
                  format_bytes(static_cast<double>(most_room))));
}

PlanningResult priced(const Simulator& simulator, ShardingPlan plan,
                      std::chrono::steady_clock::time_point start) {
  sort_shards(plan);
  PlanningResult result;
  result.predicted = simulator.cost(plan);
  result.plan = std::move(plan);
  result.stats.plans_priced = 1;
  result.stats.wall_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace neuroshard
