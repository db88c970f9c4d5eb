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

/// The planners that `compare --algorithms` names: {"all"} (the search and the baselines),
/// {"ablation"}, or planners and ablations one by one. Throws InputError listing the names.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> find_planners(
    const std::vector<std::string>& names);

}  // namespace neuroshard
