// The other planner, asked with other options.
#include "neuroshard/baselines/planner_with_cuts.h"

#include <fmt/format.h>

#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

PlannerWithCuts::PlannerWithCuts(std::unique_ptr<Planner> planner, const Cuts& cuts)
    : planner_(std::move(planner)),
      cuts_(cuts),
      name_(fmt::format("{}:{}", planner_->name(), to_string(cuts))) {
  const auto asked_for = [&](const Cuts& of) {
    PlannerOptions options;
    options.cuts = of;
    return planner_->cuts(options);
  };
  if (asked_for({true, true, true}) == asked_for(kColumnsAlone)) {
    throw InputError("algorithm", "cuts of one that chooses among them, such as neuroshard",
                     fmt::format("\"{}\"", name_));
  }
}

PlannerOptions PlannerWithCuts::with_cuts(PlannerOptions options) const {
  options.cuts = cuts_;
  return options;
}

Cuts PlannerWithCuts::cuts(const PlannerOptions& options) const {
  return planner_->cuts(with_cuts(options));
}

PlanningResult PlannerWithCuts::plan(const Simulator& simulator,
                                     const PlannerOptions& options) const {
  return planner_->plan(simulator, with_cuts(options));
}

}  // namespace neuroshard
