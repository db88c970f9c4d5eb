// All planners by name: the search and the baselines.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The search first, then the baselines.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> make_planners();

/// The search, and the search without one of its parts: the beam over cuts, the grid of limits,
/// what tries take over from each other, a kind of the improvement's chains, the improvement.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> make_ablations();

/// The planner of this name, of either list. Throws InputError listing the names.
[[nodiscard]] std::unique_ptr<Planner> find_planner(std::string_view name);

}  // namespace neuroshard
