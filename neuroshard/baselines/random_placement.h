// Random placement of whole tables.
#pragma once

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// "random": each whole table on a device drawn from those that have room for it. Large tables are
/// drawn first, and a draw that gets stuck is repeated, so that it more often finds a placement in
/// tight memory; where memory is ample this is the uniform distribution over all placements.
class RandomBaseline : public Planner {
 public:
  explicit RandomBaseline(int max_tries = 100) : max_tries_(max_tries) {}

  [[nodiscard]] std::string_view name() const override { return "random"; }
  [[nodiscard]] Cuts cuts(const PlannerOptions& /*options*/) const override {
    return {.columns = false, .rows = false, .replicas = false};
  }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  int max_tries_;  ///< largest number of draws of a whole placement
};

}  // namespace neuroshard
