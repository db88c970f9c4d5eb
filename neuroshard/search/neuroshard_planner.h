// The algorithm "neuroshard": the paper's search, followed by improvement of its plan.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/first_plan.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct NeuroShardOptions {
  std::string_view name = "neuroshard";  ///< of a literal
  BeamSearchOptions beam;
  /// Instead of those that PlannerOptions::improvement asks for.
  std::optional<LocalSearchOptions> improvement;
};

/// The budget of the improvement, without a deadline: `options.steps` or, if that is 0, what the
/// time limit leaves after a beam search of this number of head evaluations. The budget is counted
/// in nominal time, half of the time limit for one thread, so that the clock seldom decides where
/// the search ends. What the search of other cuts than columns evaluated is taken from the other
/// half, as long as that has enough, so that where they gain nothing the plan is as good as
/// without; with such cuts the budget is at least a quarter of the time limit.
[[nodiscard]] LocalSearchBudget improvement_budget(const PlannerOptions& options, int world_size,
                                                   std::int64_t head_evaluations,
                                                   std::int64_t of_other_cuts = 0);

/// The result is never predicted to cost more than the beam search's plan, which is improved by
/// pessimistic predictions (PlannerOptions::pessimism) and replaced only for a sufficient gain
/// (PlannerOptions::least_gain). Slices of rows and copies must promise more than that of the best
/// plan found that has neither, or the latter is the result. Does not depend on the number of
/// threads, nor on the machine unless the clock may stop the search
/// (PlannerOptions::stop_by_clock): then it is the cheapest plan that was found by then.
class NeuroShardPlanner final : public Planner {
 public:
  explicit NeuroShardPlanner(NeuroShardOptions options = {}) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  /// Of a task whose tables stay with none, and allow no cuts of columns unless the options do; of
  /// rows and copies, the plan has none that the options do not allow. Throws TimeIsOver if there
  /// is no plan yet.
  [[nodiscard]] PlanningResult plan_and_improve(const Simulator& allowed,
                                                const PlannerOptions& options,
                                                const StopClock& clock) const;
  /// Stopped by the clock, it leaves the best plan that there was, and its statistics say so.
  void improve(const Simulator& allowed, const PlannerOptions& options, const StopClock& clock,
               FirstPlan& first) const;
  /// The plan improved, or where there are two of all cuts the one that a part of the budget makes
  /// cheaper. Throws TimeIsOver if it comes before the first round.
  [[nodiscard]] PlanningResult improved(const Simulator& allowed, const PlannerOptions& options,
                                        const LocalSearchBudget& budget,
                                        const FirstPlan& first) const;
  /// Takes the cheapest plan of all, those of fewer cuts improved as well; of fewer cuts if two
  /// cost the same. Where slices and copies promise too little, it is the cheapest without either,
  /// whichever search found it, unless the clock stopped one of them.
  void prefer_fewer_cuts(const Simulator& allowed, const PlannerOptions& options,
                         const StopClock& clock, FirstPlan& first) const;

  NeuroShardOptions options_;
};

}  // namespace neuroshard
