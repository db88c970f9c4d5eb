// Parts that the baselines share: devices by load with memory respected, refusals, and the final
// price.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// Devices ordered by a load that the caller adds up, each with the memory that is left on it.
class LeastLoadedDevices {
 public:
  explicit LeastLoadedDevices(std::vector<std::int64_t> memory_bytes);

  /// Takes the device of lowest load (the lowest index among equals) that has room for `bytes`,
  /// adds `load` to it, and returns its index; -1 if no device has room.
  int place(std::int64_t bytes, double load);

  [[nodiscard]] std::int64_t most_room() const;
  [[nodiscard]] double largest_load() const;

 private:
  std::vector<std::int64_t> rooms_;
  std::set<std::pair<double, int>> by_load_;
};

/// Bytes of a whole table of the task.
[[nodiscard]] std::int64_t table_bytes(const Task& task, int table);

/// The whole table on one device.
[[nodiscard]] Shard whole_table(const Task& task, int table, int device);

/// "<planner>: no device has room for ... of table ..., which need ...; the most room left is ...".
[[nodiscard]] InfeasibleError no_room(std::string_view planner, const Task& task, int table,
                                      std::int64_t num_columns, std::int64_t most_room);

/// The plan in canonical order with its price, and the time since `start`.
[[nodiscard]] PlanningResult priced(const Simulator& simulator, ShardingPlan plan,
                                    std::chrono::steady_clock::time_point start);

}  // namespace neuroshard
