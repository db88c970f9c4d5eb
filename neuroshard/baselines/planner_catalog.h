// All planners by name: the search and the baselines.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The search first, then the baselines.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> make_planners();

/// The planner of this name. Throws InputError listing the names.
[[nodiscard]] std::unique_ptr<Planner> find_planner(std::string_view name);

}  // namespace neuroshard
