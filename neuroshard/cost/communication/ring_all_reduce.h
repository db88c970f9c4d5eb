// When an all-reduce ends if the links' rates and latencies are the only limit.
#pragma once

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// Time of an all-reduce of `bytes` on each device, which all enter at the same time [ms]: rings
/// within the hosts reduce, rings of the devices with the same place in their hosts add up each
/// one's share, rings within the hosts gather. 0 for a device alone and for nothing to reduce.
[[nodiscard]] double ring_all_reduce_ms(const Interconnect& interconnect, const Topology& topology,
                                        double bytes);

}  // namespace neuroshard
