// Fitting tables into memory by cutting rows, which devices can be filled with to the last row.
#pragma once

#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"

namespace neuroshard {

/// The shards of a valid plan, in canonical order, in which tables that may be cut in rows are cut
/// where a device is full, and the others in columns where they must be; empty if none was found.
/// Where the fewest rows of a slice leave no room otherwise, a table is cut in both. Tables that
/// may not lie on every device are also tried first, then with rows of others moving on for theirs
/// (row_flow.h). Costs are not looked at. If every table may be
/// cut anywhere, a plan is found whenever the tables together, uncut, leave room on each device for
/// the largest row and what a further slice takes beyond its rows. The task must be valid. Throws
/// TimeIsOver.
[[nodiscard]] std::vector<Shard> fit_with_rows(const Task& task, const StopClock& clock = {});

}  // namespace neuroshard
