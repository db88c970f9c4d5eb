// Improvement of a plan in rounds of chains.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/search/improve/slicings.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/search/replan/move_limit.h"

namespace neuroshard {

/// Nominal time of the parts of a step: as measured on the machine of docs/results.md, one thread,
/// shipped models. The search counts its work in this, not by the clock, so that its end depends on
/// the plan alone.
struct NominalStepTime {
  static constexpr double kStep_ns = 230.0;  ///< a neighbour and its floor
  static constexpr double kStepPerDevice_ns = 40.0;
  static constexpr double kAllToAlls_ns = 2'450.0;  ///< where the floor does not rule it out
  static constexpr double kAllToAllsPerDevice_ns = 150.0;
};

/// The chains of a round and their lengths. The defaults are the thorough schedule.
struct LocalSearchOptions {
  /// In the round's order; each starts from the best plan of all rounds before.
  std::vector<ChainKind> chains{ChainKind::annealing, ChainKind::large_neighbourhood};
  /// Where tables' rows may be cut in several ways, which large neighbourhoods alone change.
  std::vector<ChainKind> chains_of_slicings{ChainKind::large_neighbourhood,
                                            ChainKind::large_neighbourhood};
  std::int64_t round_steps = 60'000;  ///< length of each chain where the budget is steps
  double round_ms = 62.5;  ///< length of each chain where the budget is nominal time [ms]; on more
                           ///< than 8 devices, where a step costs more, longer in proportion
  /// A round that gains less, relative to the cost before it, counts against the patience.
  double least_round_gain = 1e-3;
  /// Annealing's temperatures relative to the round's first cost, falling geometrically over its
  /// length.
  double first_temperature = 0.1;
  double last_temperature = 1e-3;
};

[[nodiscard]] LocalSearchOptions local_search_options(ImprovementSchedule schedule);

/// How much a run of the improvement may do, and its seed.
struct LocalSearchBudget {
  /// Of each chain, over all rounds. Steps left after the last full round are not used; too few for
  /// one round make one shorter round. 0: as many as `nominal_ms` allows.
  std::int64_t steps = 0;
  /// Without steps: nominal time of all chains of all rounds on one thread [ms]; 0 or less: none.
  double nominal_ms = 0.0;
  std::uint64_t seed = 0;
  /// The search ends here even with work left; then the result depends on the machine's speed.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  const PlanningObserver* observer = nullptr;  ///< is told after every round
};

/// The rounds that a budget allows.
struct Rounds {
  std::int64_t count = 0;
  /// Length of each chain of a round, whichever is reached first: neighbours tried, and nominal
  /// time [ms].
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  double nominal_ms = std::numeric_limits<double>::infinity();
  /// Rounds in a row below `least_round_gain` after which the search ends: all rounds where the
  /// budget is steps, as the user asked for them, half of the rounds where it is time.
  std::int64_t patience = 0;
};
[[nodiscard]] Rounds rounds_of(const LocalSearchOptions& options, const LocalSearchBudget& budget,
                               int world_size);

/// Improves a plan by chains that go from neighbour to neighbour. A step of annealing moves columns
/// of one table from one device to another: a whole piece, which moves or joins another piece of
/// its table, or a part of it, which cuts it at any multiple of 4 columns or shifts an existing
/// cut; or it exchanges such pieces of two devices, as many columns as make it fit where memory is
/// tight. A step of large-neighbourhood search takes some pieces off several devices and places
/// them anew, and may take all slices of a table for those of another way of cutting its rows, of
/// which the plan must have one for each group of `slicings`; cheaper ways are tried more often.
/// Pieces go where their tables may lie; the task's tables stay with none (bundled_task.h). The
/// given plan must be valid but for the other ways; the result is likewise and predicted to cost at
/// most as much. It depends on the plan, the options and the budget alone unless the deadline comes
/// first. With a limit on what it moves, the result moves no more than that or, if the given plan
/// does, no more than that plan. Chains that the deadline leaves no time to begin are left out.
/// Throws TimeIsOver if it comes before the first round, while the ways of cutting rows are priced.
[[nodiscard]] PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                                          const LocalSearchOptions& options,
                                          const LocalSearchBudget& budget, ThreadPool& pool,
                                          const Slicings& slicings = {},
                                          const MoveLimit* move_limit = nullptr);

}  // namespace neuroshard
