// Devices by load with memory respected, refusals, and the final price.
#include "neuroshard/baselines/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "neuroshard/core/units.h"

namespace neuroshard {

LeastLoadedDevices::LeastLoadedDevices(std::vector<std::int64_t> memory_bytes)
    : rooms_(std::move(memory_bytes)) {
  for (std::size_t d = 0; d < rooms_.size(); ++d) {
    by_load_.emplace_hint(by_load_.end(), 0.0, static_cast<int>(d));
  }
}

int LeastLoadedDevices::place(std::int64_t bytes, double load) {
  const auto found = std::find_if(by_load_.begin(), by_load_.end(),
                                  [&](const auto& entry) { return rooms_[entry.second] >= bytes; });
  if (found == by_load_.end()) return -1;
  auto node = by_load_.extract(found);
  const int device = node.value().second;
  rooms_[device] -= bytes;
  node.value().first += load;
  by_load_.insert(std::move(node));
  return device;
}

std::int64_t LeastLoadedDevices::most_room() const {
  return *std::max_element(rooms_.begin(), rooms_.end());
}

double LeastLoadedDevices::largest_load() const { return by_load_.rbegin()->first; }

std::int64_t table_bytes(const Task& task, int table) {
  return shard_bytes(task.tables[table], task.tables[table].embedding_dim, task.optimizer);
}

Shard whole_table(const Task& task, int table, int device) {
  return {.table = table, .num_columns = task.tables[table].embedding_dim, .device = device};
}

InfeasibleError no_room(std::string_view planner, const Task& task, int table,
                        std::int64_t num_columns, std::int64_t most_room) {
  const Table& of = task.tables[table];
  const std::int64_t bytes = shard_bytes(of, num_columns, task.optimizer);
  const bool whole = num_columns == of.embedding_dim;
  return InfeasibleError(fmt::format(
      "{}: no device has room for {} table \"{}\" of {}; the most room left is {}", planner,
      whole ? "the whole" : fmt::format("{} columns of", num_columns), of.name,
      format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(most_room))));
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
