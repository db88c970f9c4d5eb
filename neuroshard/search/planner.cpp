// The names of a planner's options, and the ranges of their values.
#include "neuroshard/search/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

/// Not so for NaN.
void require_share(const char* option, double value) {
  if (value >= 0.0 && value <= 1.0) return;
  throw InputError(option, "a number from 0 to 1", fmt::format("{}", value));
}

}  // namespace

std::string_view to_string(ImprovementSchedule schedule) {
  return schedule == ImprovementSchedule::thorough ? "thorough" : "brief";
}

std::optional<ImprovementSchedule> improvement_schedule_from_string(std::string_view text) {
  for (const auto schedule : {ImprovementSchedule::thorough, ImprovementSchedule::brief}) {
    if (text == to_string(schedule)) return schedule;
  }
  return std::nullopt;
}

void validate(const PlannerOptions& options) {
  if (!(options.time_limit_seconds > 0.0)) {
    throw InputError("time_limit_seconds", "above 0",
                     fmt::format("{}", options.time_limit_seconds));
  }
  if (options.num_threads > kMaxThreads) {
    throw InputError("num_threads", fmt::format("at most {}", kMaxThreads),
                     fmt::format("{}", options.num_threads));
  }
  if (options.steps < 0) {
    throw InputError("steps", "0 or more", fmt::format("{}", options.steps));
  }
  require_share("pessimism", options.pessimism);
  require_share("least_gain", options.least_gain);
}

StopClock stop_clock_of(const PlannerOptions& options) {
  if (!options.stop_by_clock) return {};
  if (options.deadline) return StopClock(options.deadline);
  const std::chrono::duration<double> limit(std::min(options.time_limit_seconds, kMostSeconds));
  return StopClock(StopClock::Clock::now() +
                   std::chrono::duration_cast<StopClock::Clock::duration>(limit));
}

InfeasibleError no_plan_in_time(const PlannerOptions& options) {
  return InfeasibleError(
      fmt::format("no plan found within {}", short_seconds(options.time_limit_seconds)));
}

}  // namespace neuroshard
