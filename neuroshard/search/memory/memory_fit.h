// Does any plan fit into the devices' memory, and if not: why, and what would suffice?
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/search/memory/pinned_memory.h"

namespace neuroshard {

/// The answer to whether a task fits. It is constructive: `feasible` comes with a plan, but as the
/// question is NP-hard, not feasible means that none was found, unless `memory_needs` shows why.
struct MemoryFit {
  bool feasible = false;
  ShardingPlan plan;  ///< valid, in canonical order, with few cuts; empty if not feasible
  int num_cuts = 0;   ///< shards beyond one per table
};

/// Looks for a plan that fits: whole tables by best-fit decreasing, then halving what does not fit,
/// then filling devices completely with columns of the current table, in several orders; takes the
/// plan with the fewest cuts. Costs are not looked at. The task must be valid. A plan is found for
/// certain if all tables, cut to 4 columns, leave room on every device for one more of the largest
/// such piece, no table says how narrow its pieces may be, and none is pinned. Where the orders
/// find none, an exact search follows (exact_memory_fit.h), which is complete for small tasks.
/// Otherwise about (tables
/// + cuts) * log(devices) steps.
///
/// Columns alone are cut, unless `rows` are allowed too and nothing else fits (row_fit.h). Throws
/// TimeIsOver.
[[nodiscard]] MemoryFit fit_memory(const Task& task, bool rows = false,
                                   const StopClock& clock = {});

/// The memory that a task needs and that its devices have, in bytes.
struct MemoryNeeds {
  std::int64_t necessary_cuts = 0;  ///< of columns of tables larger than the largest device
  /// All tables with no more than the necessary cuts, as every piece of columns has optimizer state
  /// of its own: the least that any plan can need.
  std::int64_t needed = 0;
  std::int64_t optimizer_state = 0;  ///< the optimizer's part of `needed`
  std::int64_t available = 0;        ///< sum over the devices
  std::int64_t largest_device = 0;   ///< the largest capacity

  /// The largest of the pieces that cannot be cut further; a group of tables that stay together is
  /// one, and has the number of its first table.
  int largest_piece_table = 0;
  std::int64_t largest_piece_columns = 0;
  std::int64_t largest_piece_rows = 0;
  std::int64_t largest_piece = 0;

  /// Pinned tables that cannot fit where they may lie, if the task has such.
  std::optional<PinnedShortage> shortage;

  /// The smallest memory for which fit_memory finds a plan on as many devices of equal memory, in
  /// steps of `memory_step`; none if it is above the 2^60 bytes that a device may have.
  std::optional<std::int64_t> sufficient_memory;
  std::int64_t memory_step = 1;  ///< 1 MiB; 1 KiB for needs below 1 GiB, 1 byte below 1 MiB

  /// The smallest number of devices of memory `largest_device` for which fit_memory finds a plan;
  /// none if the largest piece is larger, or if kMaxWorldSize devices are not enough.
  std::optional<int> sufficient_devices;

  /// The clock stopped the search for these two: they may be there all the same.
  bool stopped_by_clock = false;
};

/// Computes the need and searches for the memory and the devices that would suffice (tens of calls
/// of fit_memory). Stopped by the clock, it leaves what was not found as it is.
[[nodiscard]] MemoryNeeds memory_needs(const Task& task, bool rows = false,
                                       const StopClock& clock = {});

/// One line saying in numbers why a task for which fit_memory found no plan does not fit, the
/// memory per device that would suffice, and the number of devices that would; without `rows`, also
/// whether cutting rows would do. What there was no time to find out is not said.
[[nodiscard]] InfeasibleError explain_infeasible(const Task& task, bool rows = false,
                                                 const StopClock& clock = {});

}  // namespace neuroshard
