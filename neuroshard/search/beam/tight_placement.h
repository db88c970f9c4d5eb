// A placement for devices that the tables nearly fill: each piece goes where time and memory
// together come out most even.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// Whether the tables, whole, need more than three quarters of all memory. A placement by time
/// alone may then run out of devices with room for what comes last, wherever that goes.
[[nodiscard]] bool is_memory_tight(const Task& task);

/// The cheapest plan of those that place lists of pieces by time and memory at once; none if no
/// list found room. The largest pieces go first, by their part of a mean device's time or memory;
/// each goes to the device with room whose e^(s·time) + e^(s·memory) rises least, both as parts of
/// what a device has. Lists are of tables that are cut to a device's memory, a half, ... of it, by
/// columns and, where `rows` may be cut, by rows, and those that the beam search with rows begins
/// with, which have `max_first_pieces` together. Some 15 to 40 lists, each placed in four ways,
/// which differ in the steepness s and in how much memory counts in the order: some (pieces ·
/// devices) multiplications and a prediction for each piece.
///
/// The task's tables stay with none (bundled_task.h). The plan is valid. Stopped by the clock, it
/// returns the cheapest so far, or throws TimeIsOver if there is none.
[[nodiscard]] std::optional<PlanningResult> plan_by_time_and_memory(const Simulator& simulator,
                                                                    bool rows,
                                                                    std::int64_t max_first_pieces,
                                                                    const StopClock& clock = {});

}  // namespace neuroshard
