// A column of plans for each number of devices, from the largest memory down.
#include "neuroshard/decide/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/core/units.h"
#include "neuroshard/plan/collected_warnings.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_warnings.h"
#include "neuroshard/search/neuroshard_planner.h"

namespace neuroshard {

namespace {

/// Of each chain of the improvement, unless the request has others.
constexpr std::int64_t kStepsOfCapacity = 5'000;
/// Of the beam search, where the improvement has no more steps than that.
constexpr int kLevels = 4;

std::vector<int> in_order(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<std::int64_t> in_order(std::vector<std::int64_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// The task on a number of devices of that memory, which its pins may rule out.
Task task_on(const Task& task, int devices, std::int64_t memory_bytes) {
  if (devices < 1 || devices > kMaxWorldSize) {
    throw InputError("--devices", fmt::format("an integer between 1 and {}", kMaxWorldSize),
                     fmt::format("{}", devices));
  }
  const int per_host = task.topology.local_world_size;
  if (devices > per_host && devices % per_host != 0) {
    throw InputError(
        "--devices",
        fmt::format("at most {0} devices, or a multiple of the task's {0} per host", per_host),
        fmt::format("{}", devices));
  }
  Task other = task;
  other.topology.world_size = devices;
  other.topology.local_world_size = std::min(devices, per_host);
  other.topology.memory_bytes.assign(devices, memory_bytes);
  validate(other.topology);
  return other;
}

/// Why a valid task's pins rule out the number of devices that it has here; empty: they do not.
std::string reason_against_devices(const Task& task) {
  try {
    validate_pins(task);
    return "";
  } catch (const InputError& error) {
    return fmt::format("{}: {}", format_count(task.topology.world_size, "device"), error.what());
  }
}

/// The planner of a point.
NeuroShardPlanner make_planner(const CapacityRequest& request) {
  NeuroShardOptions options;
  if (request.options.steps <= kStepsOfCapacity) options.beam.num_levels = kLevels;
  return NeuroShardPlanner(options);
}

PlannerOptions options_of_point(const CapacityRequest& request) {
  PlannerOptions options = request.options;
  options.num_threads = 1;  // points are planned side by side
  return options;
}

/// Plans one number of devices with every memory, unless it is ruled out.
class Column {
 public:
  Column(const Task& task, int devices, const std::vector<std::int64_t>& memory,
         const CapacityRequest& request, const CostModels& models, std::string ruled_out)
      : task_(task),
        devices_(devices),
        memory_(memory),
        request_(request),
        models_(models),
        ruled_out_(std::move(ruled_out)) {}

  /// Rising memory; `done` is called for each point.
  std::vector<CapacityPoint> points(const std::function<void()>& done) const {
    std::vector<CapacityPoint> result(memory_.size());
    // From the largest memory down: what a plan does not need, it does without.
    for (std::size_t i = memory_.size(); i-- > 0;) {
      const bool is_known =
          i + 1 < memory_.size() && result[i + 1].found && result[i + 1].used_bytes <= memory_[i];
      const bool is_hopeless = i + 1 < memory_.size() && !result[i + 1].found;
      if (is_known) {
        result[i] = result[i + 1];
        result[i].memory_bytes = memory_[i];
      } else {
        result[i] = planned(memory_[i], is_hopeless);
      }
      done();
    }
    // A plan found with less memory may be the better one.
    for (std::size_t i = 1; i < result.size(); ++i) {
      if (!result[i - 1].found || (result[i].found && result[i].cost_ms <= result[i - 1].cost_ms)) {
        continue;
      }
      result[i] = result[i - 1];
      result[i].memory_bytes = memory_[i];
    }
    return result;
  }

 private:
  /// Where there was no plan with more memory, only the reason is sought.
  [[nodiscard]] CapacityPoint planned(std::int64_t memory_bytes, bool is_hopeless) const {
    CapacityPoint point{devices_, memory_bytes};
    if (!ruled_out_.empty()) {
      point.is_ruled_out = true;
      point.reason = ruled_out_;
      return point;
    }
    if (is_hopeless) {
      point.reason = "no plan was found with more memory";
      return point;
    }
    try {
      const Task task = task_on(task_, devices_, memory_bytes);
      const Simulator simulator(task, models_.compute, models_.communication);
      const PlanningResult result =
          make_planner(request_).plan(simulator, options_of_point(request_));
      const std::vector<std::int64_t> used = device_memory(task, result.plan);
      point.found = true;
      point.cost_ms = result.predicted.cost_ms;
      point.warnings = plan_warnings(
          simulator, result.plan, result.predicted, simulator.member_ranges(result.plan),
          model_warnings(*models_.compute, task, simulator.statistics()));
      point.used_bytes = *std::max_element(used.begin(), used.end());
    } catch (const InfeasibleError& error) {
      point.reason = error.what();
    }
    return point;
  }

  const Task& task_;
  int devices_;
  const std::vector<std::int64_t>& memory_;
  const CapacityRequest& request_;
  const CostModels& models_;
  std::string ruled_out_;  ///< why; empty: it is not
};

std::vector<std::string> plans_warnings(const std::vector<CapacityPoint>& points) {
  CollectedWarnings warnings("plans");
  for (const CapacityPoint& point : points) {
    if (!point.found) continue;
    warnings.add(fmt::format("{} with {} each", format_count(point.devices, "device"),
                             format_bytes(static_cast<double>(point.memory_bytes))),
                 point.warnings);
  }
  return warnings.lines();
}

void require_request(const CapacityRequest& request) {
  if (request.devices.empty()) throw InputError("--devices", "numbers of devices", "none");
  if (request.memory_bytes.empty()) throw InputError("--memory", "sizes of memory", "none");
  validate(request.options);
  if (request.options.stop_by_clock) {
    throw InputError("time_limit_seconds", "none, as sizes of clusters are planned by steps",
                     format_seconds(request.options.time_limit_seconds));
  }
  if (request.options.steps == 0) {
    throw InputError("steps", "1 or more, as sizes of clusters are planned by steps", "0");
  }
}

}  // namespace

PlannerOptions options_of_short_search() {
  PlannerOptions options;
  options.steps = kStepsOfCapacity;
  options.improvement = ImprovementSchedule::brief;
  return options;
}

Capacity plan_capacity(const Task& task, const CapacityRequest& request,
                       const CapacityProgress& progress) {
  require_request(request);
  validate(task);
  Capacity result;
  result.devices = in_order(request.devices);
  result.memory_bytes = in_order(request.memory_bytes);
  std::vector<CostModels> models;
  std::vector<std::string> ruled_out;
  CollectedWarnings warnings("numbers of devices");
  for (const int devices : result.devices) {
    (void)task_on(task, devices, result.memory_bytes.front());
    const Task other = task_on(task, devices, result.memory_bytes.back());
    models.push_back(load_cost_models(request.models, other.topology));
    ruled_out.push_back(reason_against_devices(other));
    if (ruled_out.back().empty()) {
      warnings.add(format_count(devices, "device"), model_warnings(models.back(), other));
    }
    if (devices == result.devices.front()) {
      result.notes = model_notes(models.back(), other.topology);
    }
  }
  result.warnings = warnings.lines();
  result.models = models.front();

  std::vector<std::vector<CapacityPoint>> columns(result.devices.size());
  std::mutex mutex;
  std::size_t num_done = 0;
  const std::size_t num_points = columns.size() * result.memory_bytes.size();
  ThreadPool pool(request.options.num_threads);
  pool.for_each(columns.size(), [&](std::size_t i, int) {
    // The most devices first, as they take longest.
    const std::size_t column = columns.size() - 1 - i;
    columns[column] = Column(task, result.devices[column], result.memory_bytes, request,
                             models[column], ruled_out[column])
                          .points([&] {
                            const std::lock_guard lock(mutex);
                            ++num_done;
                            if (progress) progress(num_done, num_points);
                          });
  });
  for (const std::vector<CapacityPoint>& column : columns) {
    for (const CapacityPoint& point : column) {
      const std::size_t number = result.points.size();
      if (point.found && !result.smallest) result.smallest = number;
      if (point.found &&
          (!result.cheapest || point.cost_ms < result.points[*result.cheapest].cost_ms)) {
        result.cheapest = number;
      }
      result.points.push_back(point);
    }
  }
  for (std::string& line : plans_warnings(result.points)) {
    result.warnings.push_back(std::move(line));
  }
  return result;
}

std::vector<int> parse_device_numbers(std::string_view text, const std::string& place) {
  const auto refuse = [&] {
    return InputError(place,
                      "numbers of devices such as 4:64, which doubles, or 4,12, each from 1 to " +
                          fmt::to_string(kMaxWorldSize),
                      fmt::format("\"{}\"", text));
  };
  const auto number = [&](std::string_view part) {
    int value = 0;
    const auto [at, status] = std::from_chars(part.data(), part.data() + part.size(), value);
    const bool is_number = status == std::errc{} && at == part.data() + part.size() && value >= 1 &&
                           value <= kMaxWorldSize;
    if (!is_number) throw refuse();
    return value;
  };
  std::vector<int> numbers;
  std::string_view left = text;
  while (true) {
    const std::size_t comma = left.find(',');
    const std::string_view part = left.substr(0, comma);
    const std::size_t colon = part.find(':');
    const int first = number(part.substr(0, colon));
    numbers.push_back(first);
    if (colon != std::string_view::npos) {
      const int last = number(part.substr(colon + 1));
      if (last < first) throw refuse();
      for (std::int64_t next = 2 * std::int64_t{first}; next <= last; next *= 2) {
        numbers.push_back(static_cast<int>(next));
      }
    }
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  return in_order(std::move(numbers));
}

}  // namespace neuroshard
