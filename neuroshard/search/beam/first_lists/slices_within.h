// How many slices a table's rows are cut into so that none is larger than a device.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// Of each table the fewest slices of its rows, cut where they cost the same
/// (`Simulator::slice_ends`), that are no larger than `most_bytes` at all of its columns, as far as
/// its rows may be cut into that many; of very many, fewer may do by chance. Throws TimeIsOver.
[[nodiscard]] std::vector<int> slices_within(const Simulator& simulator, std::int64_t most_bytes,
                                             const StopClock& clock = {});

}  // namespace neuroshard
