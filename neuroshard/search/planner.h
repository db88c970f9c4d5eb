// The interface of everything that makes a sharding plan: the search and the baselines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/search_stats.h"

namespace neuroshard {

/// The kind of rounds in which a plan is improved.
enum class ImprovementSchedule {
  thorough,  ///< annealing and large neighbourhoods, in rounds of 60,000 steps of each chain
  brief,     ///< annealing alone, in rounds of 15,000 steps that begin less hot: better where there
             ///< are fewer steps than a thorough round has, up to 5 % worse where there are many
             ///< (docs/results.md)
};
[[nodiscard]] std::string_view to_string(ImprovementSchedule schedule);
[[nodiscard]] std::optional<ImprovementSchedule> improvement_schedule_from_string(
    std::string_view text);

struct PlannerOptions {
  std::uint64_t seed = 0;  ///< used wherever chance plays a part
  int num_threads = 0;     ///< <= 0: one per core; the plan does not depend on it
  /// For algorithms that improve a plan: above 0. It does not limit the search before.
  double time_limit_seconds = 1.0;
  /// Neighbours that each chain of an improvement tries, however long that takes, in full rounds or
  /// a single shorter one. 0: a number that follows from the time limit and the task alone, where
  /// the machine is fast enough for it.
  std::int64_t steps = 0;
  /// Those that plans may have, as far as task and table allow them too. Not every planner knows
  /// all of them (Planner::cuts).
  Cuts cuts{};
  ImprovementSchedule improvement = ImprovementSchedule::thorough;
  /// From 0, plans are improved by the mean of an ensemble's predictions, to 1, by its highest.
  double pessimism = 0.5;
  /// The improved plan must be predicted to cost less than the beam search's by this share of the
  /// longest computation of a device, or the latter is kept: smaller gains are within a cost
  /// model's error, and measured they are as often losses (docs/results.md).
  double least_gain = 0.01;

  /// If false, the time limit says how much work is done, and the clock stops nothing: for making a
  /// plan again on a slower machine. Not an option of the user's.
  bool stop_by_clock = true;

  friend bool operator==(const PlannerOptions&, const PlannerOptions&) = default;
};

/// Throws InputError, which names the option, for values out of range.
void validate(const PlannerOptions& options);

struct PlanningResult {
  ShardingPlan plan{};
  PlanCost predicted{};
  SearchStats stats{};
};

class Planner {
 public:
  virtual ~Planner() = default;

  /// As on the command line, e.g. "greedy-size".
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// The cuts that plans may have by these options.
  [[nodiscard]] virtual Cuts cuts(const PlannerOptions& options) const { return options.cuts; }

  /// A valid plan for the simulator's task. Throws InfeasibleError if this planner finds none;
  /// the message says why in numbers.
  [[nodiscard]] virtual PlanningResult plan(const Simulator& simulator,
                                            const PlannerOptions& options) const = 0;
};

}  // namespace neuroshard
