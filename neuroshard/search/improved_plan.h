// The improvement of a plan of any cuts, as the planners use it.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/search/replan/move_limit.h"

namespace neuroshard {

/// The simulator with which plans are improved: `pessimism` as PlannerOptions has it.
[[nodiscard]] Simulator pessimist(const Simulator& simulator, double pessimism);

/// The longest computation of a device [ms], of which PlannerOptions::least_gain is a share.
[[nodiscard]] double longest_compute_ms(const PlanCost& cost);

/// What a plan may move of what an older one placed; of the task at hand, whose tables stand for
/// `origins`.
struct MoveRules {
  const PlacedBefore& before;
  const std::vector<TableOrigin>& origins;
  std::int64_t limit_bytes = 0;
};

/// The plan improved within these cuts; its replicated tables stay. With `rules`, within their
/// limit, and each table's columns lie where they move least. Slices of rows stay as they are where
/// `cuts` have no rows. Throws TimeIsOver if the deadline comes before the first round.
[[nodiscard]] PlanningResult improved_plan(const Simulator& simulator, const ShardingPlan& plan,
                                           const Cuts& cuts, const LocalSearchOptions& improvement,
                                           const LocalSearchBudget& budget, ThreadPool& pool,
                                           const MoveRules* rules = nullptr);

}  // namespace neuroshard
