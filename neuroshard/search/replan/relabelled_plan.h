// A plan on other devices of the same kind, such that it moves little.
#pragma once

#include "neuroshard/search/replan/placed_before.h"

namespace neuroshard {

/// The plan with its devices, and with them whole hosts, exchanged such that they hold as much as
/// possible of what they held before: an optimal assignment of devices within each pair of hosts,
/// and of hosts to hosts; above 256 devices a host, or 512 hosts, none. Only devices of equal
/// memory, and hosts of equal devices, are exchanged. A plan of a task in which tables name their
/// devices stays as it is. The cost may change where devices share a card.
[[nodiscard]] ShardingPlan relabelled_plan(const Task& task, const PlacedBefore& before,
                                           const ShardingPlan& plan);

}  // namespace neuroshard
