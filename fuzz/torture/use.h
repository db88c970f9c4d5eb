// What goes on with a value that a reader has accepted: plans made, checked, priced, explained and
// reported. Invariants that do not hold are violations.
#pragma once

#include <string_view>

#include "fuzz/torture/workplace.h"
#include "neuroshard/core/random.h"
#include "neuroshard/core/task.h"
#include "neuroshard/io/plan_io.h"

namespace neuroshard::fuzz {

/// Plans a task of a few tables and devices in a few steps, and takes the plan through its file,
/// check, report, price and explanation. Returns false, without having done anything, for a larger
/// task, and where there is no plan.
bool use_task(const Task& task, Workplace& place, Random& random);

/// Checks a plan; one that is valid and small is priced, reported and explained. Returns false for
/// others.
bool use_plan(const PlanDocument& document, Workplace& place, Random& random);

/// Finite and at least 0, of the plan and of each device.
void require_cost(const PlanCost& cost);

/// A text for people: nothing that a terminal obeys but the ends of lines.
void require_text(std::string_view text);

}  // namespace neuroshard::fuzz
