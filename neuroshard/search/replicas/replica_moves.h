// A plan with single tables put on every device, or taken from there.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/search_stats.h"

namespace neuroshard {

/// What a plan may move of what an older one placed.
struct ReplicaMoveLimit {
  /// Bytes that a table moves in these shards or, without any, on every device.
  std::function<std::int64_t(int table, std::span<const Shard> shards)> moved_bytes;
  std::int64_t limit_bytes = 0;  ///< of the whole plan
};

/// The plan after the moves that each lower its predicted cost most, as long as one does: a table
/// of few rows goes to every device, where there is memory, or a replicated one whole to the device
/// that it delays least, of the 16 with least to do, or, if its rows `may_slice`, in as many slices
/// as there are devices. The plan must be valid; the result is. `stats` counts the work. Where the
/// clock stops it, the plan is that of the moves made by then, and `stats` say so. With a limit on
/// what plans move, a move that exceeds it is not made.
[[nodiscard]] ShardingPlan with_replica_moves(const Simulator& simulator, const ShardingPlan& plan,
                                              bool may_slice, SearchStats& stats,
                                              const StopClock& clock = {},
                                              const ReplicaMoveLimit* limit = nullptr);

}  // namespace neuroshard
