// The short searches by which explanations find what a change or a choice leads to.
#pragma once

#include "neuroshard/cost/simulator.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// The options of the plan's own search, as far as it records them, for a search of fixed work on
/// one thread, which the clock ends after `seconds` at the latest.
[[nodiscard]] PlannerOptions short_search(const PlanDocument& document, double seconds);

/// The simulator's task planned from the document's plan and from nothing, whichever is cheaper.
[[nodiscard]] PlanningResult planned_again(const Simulator& simulator, const PlanDocument& document,
                                           const PlannerOptions& options);

/// The table's number in the task. Throws InputError, naming `place`, if it has none of this name.
[[nodiscard]] int find_table(const Task& task, const std::string& name, const std::string& place);

}  // namespace neuroshard
