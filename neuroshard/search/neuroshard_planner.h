// The algorithm "neuroshard": the paper's search, and then improvement of its plan.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct NeuroShardOptions {
  std::string_view name = "neuroshard";  ///< of a literal
  BeamSearchOptions beam;
  /// Instead of those that PlannerOptions::improvement asks for.
  std::optional<LocalSearchOptions> improvement;
};

/// What the improvement may do, without a deadline: `options.steps`, or if that is 0, what the time
/// limit leaves after a beam search of this number of head evaluations. That is counted in nominal
/// time, of which the limit has twice as much as one thread needs, so that it is seldom the clock
/// that decides where the search ends.
[[nodiscard]] LocalSearchBudget improvement_budget(const PlannerOptions& options, int world_size,
                                                   std::int64_t head_evaluations);

/// Never predicted to cost more than the beam search's plan, which is improved by a pessimist's
/// predictions (PlannerOptions::pessimism) and replaced only for a gain worth it
/// (PlannerOptions::least_gain). Does not depend on the number of threads, nor on the
/// machine as long as the time limit leaves time for all steps.
class NeuroShardPlanner final : public Planner {
 public:
  explicit NeuroShardPlanner(NeuroShardOptions options = {}) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  NeuroShardOptions options_;
};

}  // namespace neuroshard
