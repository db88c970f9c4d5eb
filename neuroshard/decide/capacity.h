// What a task costs on other numbers of devices, with other memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/task.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// A point costs a fraction of a second, and sizes of clusters differ by more than what longer
/// searches gain.
[[nodiscard]] PlannerOptions options_of_short_search();

struct CapacityRequest {
  std::vector<int> devices{};                ///< numbers of devices, at least one
  std::vector<std::int64_t> memory_bytes{};  ///< of each device, at least one size
  std::vector<std::string> models{};         ///< by name or file; a kind not named: the default
  /// Points are planned by steps, at least one, not by time.
  PlannerOptions options = options_of_short_search();
};

/// One size of cluster.
struct CapacityPoint {
  int devices = 0;
  std::int64_t memory_bytes = 0;  ///< of each device
  bool found = false;
  double cost_ms = 0.0;         ///< predicted, of the best plan found
  std::int64_t used_bytes = 0;  ///< by that plan, on its fullest device
  std::string reason{};         ///< why no plan, if not found
  bool is_ruled_out = false;    ///< by pins of tables, whatever the memory
  /// About the plan's prediction, beyond what is said of the task, as of plan_warnings.
  std::vector<std::string> warnings{};
};

struct Capacity {
  std::vector<int> devices{};                ///< rising
  std::vector<std::int64_t> memory_bytes{};  ///< rising
  std::vector<CapacityPoint> points{};       ///< by devices, then by memory
  /// The point of fewest devices, and of these of least memory, for which there is a plan; and the
  /// point of lowest cost, of equal ones the first.
  std::optional<std::size_t> smallest{};
  std::optional<std::size_t> cheapest{};
  CostModels models{};  ///< those of the first number of devices
  std::vector<std::string>
      warnings{};  ///< of the task on all numbers of devices, then of the plans
  std::vector<std::string> notes{};
};

/// Done so far, of all.
using CapacityProgress = std::function<void(std::size_t done, std::size_t all)>;

/// Plans the task for every number of devices with every memory. Hosts keep the task's devices per
/// host; fewer devices are one host. A plan for a smaller memory is one for a larger, too, and one
/// for a larger memory that needs less is one for the smaller: costs never rise with memory, and
/// only as much is planned as has to be. Numbers of devices without one that a table is pinned to
/// are points without a plan. Does not depend on the number of threads. Throws InputError for
/// numbers of devices that no hosts of that size make, and for sizes out of range. `progress` is
/// called by one thread at a time.
[[nodiscard]] Capacity plan_capacity(const Task& task, const CapacityRequest& request,
                                     const CapacityProgress& progress = {});

/// "4:64" -> 4, 8, 16, 32, 64; "4,12" -> 4, 12; both may be mixed: "1,4:16". Rising, none twice.
/// Throws InputError naming `place`.
[[nodiscard]] std::vector<int> parse_device_numbers(std::string_view text,
                                                    const std::string& place);

}  // namespace neuroshard
