// The algorithm "neuroshard": the paper's search, and then improvement of its plan.
#pragma once

#include "neuroshard/search/beam_search.h"
#include "neuroshard/search/local_search.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct NeuroShardOptions {
  BeamSearchOptions beam;
  LocalSearchOptions improvement;  ///< its seed and deadline come from PlannerOptions
};

/// Never predicted to cost more than the beam search's plan. Does not depend on the number of
/// threads, nor on the time limit as long as that leaves time for all steps.
class NeuroShardPlanner final : public Planner {
 public:
  explicit NeuroShardPlanner(NeuroShardOptions options = {}) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "neuroshard"; }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  NeuroShardOptions options_;
};

}  // namespace neuroshard
