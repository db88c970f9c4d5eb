// A plan on other devices of the same kind, such that it moves little.
#pragma once

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/search/replan/placed_before.h"

namespace neuroshard {

/// The plan with its devices, and with them whole hosts, exchanged such that they hold as much as
/// possible of what they held before: an optimal assignment of devices within each pair of hosts,
/// and of hosts to hosts. Only devices of equal memory, and hosts of equal devices, are exchanged.
/// The plan stays as it is where tables name their devices, above 256 devices a host, 512 hosts,
/// 8,192 devices or 10^10 steps (devices^2 times those of a host), and where the time is over. The
/// cost may change where devices share a card.
[[nodiscard]] ShardingPlan relabelled_plan(const Task& task, const PlacedBefore& before,
                                           const ShardingPlan& plan, const StopClock& clock = {});

}  // namespace neuroshard
