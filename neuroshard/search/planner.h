// The interface of everything that makes a sharding plan: the search and the baselines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
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

enum class PlanningStage { first_plan, improvement, lower_bound, baselines };

/// How far a planning is.
struct PlanningProgress {
  PlanningStage stage = PlanningStage::first_plan;
  std::int64_t done = 0;  ///< levels of a beam search, rounds of the improvement, baselines
  std::int64_t all = 0;   ///< of these, at most; 0: not known
  std::optional<double> best_cost_ms{};  ///< that the stage has found last
};

/// Is told after every level and round, by any of the planner's threads. It must not throw.
using PlanningObserver = std::function<void(const PlanningProgress&)>;

/// Tells an observer, if there is one.
inline void tell(const PlanningObserver* observer, const PlanningProgress& progress) {
  if (observer != nullptr && *observer) (*observer)(progress);
}

struct PlannerOptions {
  std::uint64_t seed = 0;  ///< used wherever chance plays a part
  /// At most kMaxThreads (core/machine/parallel.h); <= 0: one per core. The plan does not depend on
  /// it.
  int num_threads = 0;
  /// Above 0. How much work algorithms that improve a plan do: as much as a known machine does in
  /// that time, so that the plan does not depend on how fast the machine at hand is.
  double time_limit_seconds = 1.0;
  /// Whether the clock stops a planner when these seconds are over, wherever it is: the plan is
  /// then the best so far, depends on the machine's speed, and says so
  /// (SearchStats::stopped_by_clock); if there is none, there is an InfeasibleError.
  bool stop_by_clock = false;
  /// When these seconds end; none: that many after the planner began.
  std::optional<StopClock::Clock::time_point> deadline{};
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
  /// Must outlive the planning; what it is told changes nothing of the plan.
  const PlanningObserver* observer = nullptr;

  friend bool operator==(const PlannerOptions&, const PlannerOptions&) = default;
};

/// A year: a longer time limit is as good as none [s].
inline constexpr double kMostSeconds = 31'536'000.0;

/// Throws InputError, which names the option, for values out of range.
void validate(const PlannerOptions& options);

/// The clock of a planner that begins now.
[[nodiscard]] StopClock stop_clock_of(const PlannerOptions& options);

/// "no plan found within 10 ms".
[[nodiscard]] InfeasibleError no_plan_in_time(const PlannerOptions& options);

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
