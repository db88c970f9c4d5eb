// An older plan made valid for a new task with little moved.
#pragma once

#include <optional>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/replan/move_limit.h"
#include "neuroshard/search/replan/placed_before.h"

namespace neuroshard {

/// Where each part of each table stays, as far as the task allows that: slices that end with the
/// last row grow with the table, copies stay copies. Tables that are new, or cut or placed as the
/// task no longer allows, and parts on devices that are gone are on no device (-1). `origins` are
/// those of the simulator's tables, which stay with none.
[[nodiscard]] ShardingPlan settled_parts(const Simulator& simulator, const PlacedBefore& before,
                                         const std::vector<TableOrigin>& origins);

/// A plan of parts, some of them on no device (-1): with devices that hold more than they may
/// relieved of what moves fewest bytes, and then everything that is on no device put where it costs
/// least, the costliest first, cut in halves where it has no room. A valid plan in canonical order,
/// or nothing if some part found no room. The simulator's tables stay with none. Throws TimeIsOver.
[[nodiscard]] std::optional<ShardingPlan> repaired_plan(const Simulator& simulator,
                                                        ShardingPlan parts,
                                                        const StopClock& clock = {});

}  // namespace neuroshard
