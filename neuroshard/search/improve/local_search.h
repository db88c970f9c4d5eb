// Improvement of a plan in rounds of chains.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

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

/// How a chain leaves a plan that no single neighbour improves.
enum class ImprovementMethod {
  both,                 ///< the chains of a round in turns, annealing first
  annealing,            ///< by neighbours that are worse, at first often
  large_neighbourhood,  ///< by several pieces taken and given at a time
};

struct LocalSearchOptions {
  ImprovementMethod method = ImprovementMethod::both;
  std::int64_t num_rounds = 4;  ///< at the most; 0: none
  /// Length of each chain of a round, whichever is reached first: neighbours tried, and nominal
  /// time [ms].
  std::int64_t num_steps = 60'000;
  double round_ms = 62.5;
  int num_chains = 2;  ///< independent chains of a round, which starts from the best plan of all
                       ///< before
  /// Rounds in a row that find less than `least_gain` (relative) before the search ends.
  std::int64_t patience = 2;
  double least_gain = 1e-3;
  /// Annealing's temperatures relative to the round's first cost, falling geometrically over its
  /// length.
  double first_temperature = 0.1;
  double last_temperature = 1e-3;
  std::uint64_t seed = 0;
  /// The search ends here even with steps left; then the result depends on the machine's speed.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// Short rounds of annealing that begin less hot: better than the default where there is time for a
/// tenth of its steps only, and up to 5 % worse where there is time for all (docs/results.md).
[[nodiscard]] LocalSearchOptions brief_local_search();

/// Chains go from neighbour to neighbour. One of annealing takes columns of one table from one
/// device to another: all of a piece, so that it moves or joins another piece of its table, or a
/// part of it, so that it is cut at any multiple of 4 columns or an existing cut shifts; or
/// exchanges such pieces of two devices, as many columns as make it fit where memory is tight. One
/// of large neighbourhoods takes some pieces from several devices and gives them anew. Returns a
/// plan that is valid and whose predicted cost is at most the given one's, which must be valid.
/// Depends on the plan and the options alone unless the deadline comes first.
[[nodiscard]] PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                                          const LocalSearchOptions& options, ThreadPool& pool);

}  // namespace neuroshard
