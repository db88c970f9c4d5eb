// Fitting tables into memory by rows where pins overlap: rows of one table make way for another's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// Shards of these tables, each in slices of all its columns on devices that it may lie on, such
/// that each device's take at most its bytes of `rooms`; empty if none were found. A flow along
/// shortest augmenting paths: it finds them whenever they exist, if rows are of equal bytes, rooms
/// whole numbers of rows and slices take nothing beyond their rows. The tables must allow slices of
/// a single row. Throws TimeIsOver.
[[nodiscard]] std::vector<Shard> fit_by_row_flow(const Task& task, std::span<const int> tables,
                                                 std::vector<std::int64_t> rooms,
                                                 const StopClock& clock);

}  // namespace neuroshard
