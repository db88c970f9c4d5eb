// Does any column-wise plan fit into memory? The exact answer, for tasks small enough to try all.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"

namespace neuroshard {

enum class FitAnswer {
  fits,
  does_not_fit,
  unknown,  ///< the search was ended before it had tried everything
};

struct ExactFit {
  FitAnswer answer = FitAnswer::unknown;
  std::vector<Shard> shards;  ///< of a plan that fits; in no order
};

/// Tries every way of dividing the tables' columns among the devices, the tables with the largest
/// narrowest pieces first, as they leave the fewest ways. Pieces of a table on one device are one,
/// which needs no more memory than two; devices with equal room, on which the same tables may lie,
/// are tried once. Tables that stay together are one that cannot be cut. Stops, without an answer,
/// after `max_nodes` decisions of how many columns of a table a device gets, each of which takes
/// some 50 bytes. Throws TimeIsOver.
[[nodiscard]] ExactFit fit_exactly(const Task& task, std::int64_t max_nodes,
                                   const StopClock& clock = {});

}  // namespace neuroshard
