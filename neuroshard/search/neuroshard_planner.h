// The algorithm "neuroshard": the paper's search, and then improvement of its plan.
#pragma once

#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct NeuroShardOptions {
  std::string_view name = "neuroshard";  ///< of a literal
  BeamSearchOptions beam;
  LocalSearchOptions improvement;  ///< budget, seed and deadline come from PlannerOptions
};

/// The improvement's budget of rounds and their length: `options.steps` neighbours of each chain,
/// in brief rounds of annealing if they are fewer than a round's; or if that is 0, what the time
/// limit leaves after a beam search of so many `head_evaluations`. That is counted in nominal time,
/// of which the limit has twice as much as one thread needs, so that it is seldom the clock that
/// decides where the search ends.
void set_budget(LocalSearchOptions& improvement, const PlannerOptions& options, int world_size,
                std::int64_t head_evaluations);

/// Never predicted to cost more than the beam search's plan, which is improved by a pessimist's
/// predictions (PlannerOptions::pessimism) and given up only for a gain worth it
/// (PlannerOptions::least_gain). Does not depend on the number of threads, nor on the
/// machine as long as the time limit leaves time for all steps.
class NeuroShardPlanner final : public Planner {
 public:
  explicit NeuroShardPlanner(NeuroShardOptions options = {}) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  NeuroShardOptions options_;
};

}  // namespace neuroshard
