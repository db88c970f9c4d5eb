// Improvement of a plan in rounds of chains.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "neuroshard/core/parallel.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// What steps cost on the machine of docs/results.md, one thread, shipped models. The search counts
/// its work by this, not by the clock, so that where it ends depends on the plan alone.
struct NominalStepTime {
  static constexpr double kStep_ns = 230.0;  ///< a neighbour and its floor
  static constexpr double kStepPerDevice_ns = 40.0;
  static constexpr double kAllToAlls_ns = 2'450.0;  ///< where the floor does not rule it out
  static constexpr double kAllToAllsPerDevice_ns = 150.0;
};

/// What a round is like. The defaults are the thorough schedule.
struct LocalSearchOptions {
  /// In the round's order; each starts from the best plan of all rounds before.
  std::vector<ChainKind> chains{ChainKind::annealing, ChainKind::large_neighbourhood};
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
  /// Of each chain, all rounds together; what is left after the last full round is not used, and
  /// what is too little for one makes a shorter one. 0: as many as `nominal_ms` allows.
  std::int64_t steps = 0;
  /// Without steps: nominal time of all chains of all rounds on one thread [ms]; 0 or less: none.
  double nominal_ms = 0.0;
  std::uint64_t seed = 0;
  /// The search ends here even with work left; then the result depends on the machine's speed.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// The rounds that a budget allows.
struct Rounds {
  std::int64_t count = 0;
  /// Length of each chain of a round, whichever is reached first: neighbours tried, and nominal
  /// time [ms].
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  double nominal_ms = std::numeric_limits<double>::infinity();
  /// Rounds in a row below `least_round_gain` after which the search ends: all of them where the
  /// budget is steps, which are asked for, half of them where it is time.
  std::int64_t patience = 0;
};
[[nodiscard]] Rounds rounds_of(const LocalSearchOptions& options, const LocalSearchBudget& budget,
                               int world_size);

/// Chains go from neighbour to neighbour. One of annealing takes columns of one table from one
/// device to another: all of a piece, so that it moves or joins another piece of its table, or a
/// part of it, so that it is cut at any multiple of 4 columns or an existing cut shifts; or
/// exchanges such pieces of two devices, as many columns as make it fit where memory is tight. One
/// of large neighbourhoods takes some pieces from several devices and gives them anew. Returns a
/// plan that is valid and whose predicted cost is at most the given one's, which must be valid.
/// Depends on the plan, the options and the budget alone unless the deadline comes first.
[[nodiscard]] PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                                          const LocalSearchOptions& options,
                                          const LocalSearchBudget& budget, ThreadPool& pool);

}  // namespace neuroshard
