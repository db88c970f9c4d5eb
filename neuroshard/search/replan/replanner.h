// Planning again with little moved.
#pragma once

#include <limits>
#include <memory>
#include <string_view>

#include "neuroshard/search/planner.h"
#include "neuroshard/search/replan/placed_before.h"

namespace neuroshard {

/// More than all: copies of tables can move more than the older plan placed.
inline constexpr double kAnyMove = std::numeric_limits<double>::infinity();

/// Improves an older plan, made valid for the task, within a limit on the bytes that move. The
/// result moves at most that share of the bytes that the older plan placed (placed_before.h), and
/// is never predicted to cost more than the repaired plan where that keeps to the limit: then each
/// move must gain enough (PlannerOptions::least_gain), or that plan stays. Does not depend on the
/// number of threads, nor on the machine unless the clock may stop the search.
class Replanner final : public Planner {
 public:
  /// `before` is of the simulator's task; `max_move` is from 0 to 1, or kAnyMove.
  Replanner(std::shared_ptr<const PlacedBefore> before, double max_move)
      : before_(std::move(before)), max_move_(max_move) {}

  [[nodiscard]] std::string_view name() const override { return "replan"; }

  /// Throws InfeasibleError if no plan is found that moves so little, with the least share that
  /// one was found to move; and as other planners do, if there is no plan at all.
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  std::shared_ptr<const PlacedBefore> before_;
  double max_move_;
};

/// A plan of parts, some of them on no device (-1), with these put where they cost least
/// (repaired_plan.h) and then improved: rows stay cut as they are, and replicated tables on every
/// device. Throws InfeasibleError if a part finds no room, or the clock comes before all have some;
/// later, it ends the improvement alone.
[[nodiscard]] PlanningResult improved_from(const Simulator& simulator, const ShardingPlan& parts,
                                           const PlannerOptions& options);

}  // namespace neuroshard
