// Planning again from a plan that is there.
#include "neuroshard/decide/planning_again.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "neuroshard/core/error.h"
#include "neuroshard/plan/replan_task.h"
#include "neuroshard/search/replan/replanner.h"

namespace neuroshard {

namespace {

/// Of each chain of the improvement.
constexpr std::int64_t kStepsOfPlanningAgain = 20'000;

}  // namespace

PlannerOptions short_search(const PlanDocument& document, double seconds) {
  PlannerOptions options = options_of_older(document);
  options.steps = kStepsOfPlanningAgain;
  options.improvement = ImprovementSchedule::brief;
  options.least_gain = 0.0;
  options.num_threads = 1;
  options.time_limit_seconds = seconds;
  options.stop_by_clock = true;
  options.deadline.reset();
  return options;
}

PlanningResult planned_again(const Simulator& simulator, const PlanDocument& document,
                             const PlannerOptions& options) {
  const auto before =
      std::make_shared<const PlacedBefore>(document.task, document.plan, simulator.task());
  return Replanner(before, kAnyMove).plan(simulator, options);
}

int find_table(const Task& task, const std::string& name, const std::string& place) {
  const auto found = std::find_if(task.tables.begin(), task.tables.end(),
                                  [&](const Table& table) { return table.name == name; });
  if (found == task.tables.end()) {
    throw InputError(place, "the name of a table of the plan's task", fmt::format("\"{}\"", name));
  }
  return static_cast<int>(std::distance(task.tables.begin(), found));
}

}  // namespace neuroshard
