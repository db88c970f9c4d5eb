// The search without one of its parts at a time, to show the contribution of each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The search, and the search without one of its parts: the beam over cuts, the grid of limits, the
/// reuse of earlier tries, one kind of the improvement's chains, the improvement.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> make_ablations();

/// The planners that `compare --algorithms` names: "all" (the search and the baselines),
/// "ablation", planners and ablations, and "NAME:CUTS", one of these with cuts of its own
/// (planner_with_cuts.h). One that several words stand for is there once. Throws InputError for
/// unknown names, listing the known ones, for cuts that are none, and for a name that is given
/// twice.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> find_planners(
    const std::vector<std::string>& names);

}  // namespace neuroshard
