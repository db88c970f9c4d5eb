// The baselines by name: the other planners, behind the interface of the search.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// All baselines: random, greedy-size, greedy-dim, greedy-lookup, greedy-lookup-size,
/// torchrec-like.
[[nodiscard]] std::vector<std::unique_ptr<Planner>> make_baselines();

/// The planner of this name among these. Throws InputError listing their names.
[[nodiscard]] std::unique_ptr<Planner> take_by_name(std::vector<std::unique_ptr<Planner>> planners,
                                                    std::string_view name);

}  // namespace neuroshard
