// Why no plan fits into the devices' memory, and what would suffice.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/core/error.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/search/memory/least_memory.h"

namespace neuroshard {

/// What a task needs, and what would suffice for it.
struct MemoryNeeds : LeastMemory {
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
/// of fit_memory).
[[nodiscard]] MemoryNeeds memory_needs(const Task& task, bool rows = false,
                                       const StopClock& clock = {});

/// One line saying in numbers why a task for which fit_memory found no plan does not fit, the
/// memory per device that would suffice, and the number of devices that would; without `rows`, also
/// whether cutting rows would do, and with them whether shorter slices would
/// (Table::min_shard_rows).
[[nodiscard]] InfeasibleError explain_infeasible(const Task& task, bool rows = false,
                                                 const StopClock& clock = {});

/// Of a task with no plan of these cuts, whose tables allow what may be cut at all
/// (`Simulator::task`): the same error, with the further cuts that would do, if there are such.
[[nodiscard]] InfeasibleError with_cuts_that_would_do(const InfeasibleError& error,
                                                      const Task& task, const Cuts& cuts,
                                                      const StopClock& clock = {});

}  // namespace neuroshard
