// Does any plan fit into the devices' memory?
#pragma once

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"

namespace neuroshard {

/// The answer to whether a task fits. It is constructive: `feasible` comes with a plan, but as the
/// question is NP-hard, not feasible means that none was found, unless `memory_needs`
/// (memory_needs.h) shows why.
struct MemoryFit {
  bool feasible = false;
  ShardingPlan plan;  ///< valid, in canonical order, with few cuts; empty if not feasible
  int num_cuts = 0;   ///< shards beyond one per table
  /// Found by a search of slices of rows, whether or not it made some; columns alone may not do.
  bool by_rows = false;
};

/// Looks for a plan that fits: whole tables by best-fit decreasing, then halving what does not fit,
/// then filling devices completely with columns of the current table, in several orders; takes the
/// plan with the fewest cuts. Costs are not looked at. The task must be valid. A plan is found for
/// certain if all tables, cut to 4 columns, leave room on every device for one more of the largest
/// such piece, no table says how narrow its pieces may be, and none is pinned. That takes about
/// (tables + cuts) * log(devices) steps. Where the orders find none, two exact searches follow, of
/// limited length: table after table (exact_memory_fit.h) and device after device (full_devices.h).
///
/// Columns alone are cut, unless `rows` are allowed too and neither the orders nor the first of the
/// exact searches find a plan: then slices of rows (row_fit.h) come before the second. Throws
/// TimeIsOver.
[[nodiscard]] MemoryFit fit_memory(const Task& task, bool rows = false,
                                   const StopClock& clock = {});

}  // namespace neuroshard
