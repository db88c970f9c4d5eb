// Local improvement of a plan: annealed moves, swaps, cuts and merges around the slowest devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "neuroshard/core/parallel.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct LocalSearchOptions {
  std::int64_t num_steps = 15'000;  ///< neighbours tried by each chain (fewer beyond 256
                                    ///< devices); 0: none
  int num_chains = 2;               ///< independent chains; the best result counts
  /// Temperatures relative to the first plan's cost, falling geometrically.
  double first_temperature = 3e-2;
  double last_temperature = 1e-3;
  std::uint64_t seed = 0;
  /// Chains end here even with steps left; then the result depends on the machine's speed.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// A neighbour of a plan takes columns of one table from one device to another: all of a piece, so
/// that it moves or joins another piece of its table, or a part of it, so that it is cut at any
/// multiple of 4 columns or an existing cut shifts; or exchanges such pieces of two devices.
/// Returns a plan that is valid and whose predicted cost is at most the given one's, which must be
/// valid. Depends on plan, steps, chains and seed alone unless the deadline comes first.
[[nodiscard]] PlanningResult improve_plan(const Simulator& simulator, const ShardingPlan& plan,
                                          const LocalSearchOptions& options, ThreadPool& pool);

}  // namespace neuroshard
