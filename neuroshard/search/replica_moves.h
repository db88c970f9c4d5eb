// A plan with single tables put on every device, or taken from there.
#pragma once

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/search_stats.h"

namespace neuroshard {

/// The plan after the moves that each lower its predicted cost most, as long as one does: a table
/// of few rows goes to every device, where there is memory, or a replicated one whole to the device
/// that it delays least, of the 16 with least to do, or, if its rows `may_slice`, in as many slices
/// as there are devices. The plan must be valid; the result is. `stats` counts the work. Where the
/// clock stops it, the plan is that of the moves made by then, and `stats` say so.
[[nodiscard]] ShardingPlan with_replica_moves(const Simulator& simulator, const ShardingPlan& plan,
                                              bool may_slice, SearchStats& stats,
                                              const StopClock& clock = {});

}  // namespace neuroshard
