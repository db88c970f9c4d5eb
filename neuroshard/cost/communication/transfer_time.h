// How long bytes take from device to device: the links' rates alone.
#pragma once

#include <span>

#include "neuroshard/core/device_transfer.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// Until all of these have arrived, all on their way together [ms]: the longest time that one link
/// or card is busy, in either direction, and the latency. As switches never block, messages can be
/// ordered such that none takes longer. Of hosts, `local_world_size` is taken; devices may have
/// numbers beyond the topology's, as those of an older one do. 0 without transfers.
[[nodiscard]] double transfer_ms(const Interconnect& interconnect, const Topology& topology,
                                 std::span<const DeviceTransfer> transfers);

}  // namespace neuroshard
