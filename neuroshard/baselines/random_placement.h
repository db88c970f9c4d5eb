// Random placement of whole tables.
#pragma once

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// "random": each whole table on a device drawn from those that have room for it. Large tables are
/// drawn first, and a draw that gets stuck is repeated, so that a tight memory is met more often;
/// where memory is ample this is the uniform distribution over all placements.
class RandomBaseline : public Planner {
 public:
  explicit RandomBaseline(int max_tries = 100) : max_tries_(max_tries) {}

  [[nodiscard]] std::string_view name() const override { return "random"; }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  int max_tries_;  ///< draws of a whole placement before it gives up
};

}  // namespace neuroshard
