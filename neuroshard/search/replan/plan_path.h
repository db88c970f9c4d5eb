// Ways between two plans, table by table.
#pragma once

#include <cstdint>
#include <functional>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// Goes from a valid plan towards `home`, one table at a time to where that has it, until the plan
/// moves no more than the limit, no table can go on or the time is over: the table next that frees
/// most bytes for what it adds to the cost, of those that memory has room for. Tables of which
/// `home` has parts on no device (-1) stay. The plan on the way, valid.
[[nodiscard]] ShardingPlan way_home(
    const Simulator& given, const ShardingPlan& from, const ShardingPlan& home,
    const std::function<std::int64_t(const ShardingPlan&)>& moved_bytes, std::int64_t limit_bytes,
    const StopClock& clock = {});

}  // namespace neuroshard
