// Planning where tables stay together: the search plans with each group as one table.
#pragma once

#include <functional>

#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The result of `plan` on the simulator's task or, where tables of it stay together, on the task
/// in which each group is one table (bundled_task.h): a plan of the simulator's task either way.
/// Throws InfeasibleError, which names tables of groups, if the groups do not fit into memory, with
/// `rows` cut or without, and TimeIsOver.
[[nodiscard]] PlanningResult plan_bundled(
    const Simulator& simulator, const std::function<PlanningResult(const Simulator&)>& plan,
    bool rows, const StopClock& clock = {});

}  // namespace neuroshard
