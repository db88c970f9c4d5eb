// A plan as TorchRec's EmbeddingShardingPlanner makes it: enumerate, estimate, propose, partition,
// rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "neuroshard/baselines/torchrec/perf_estimate.h"
#include "neuroshard/baselines/torchrec/sharding_option.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard::torchrec {

struct ShardingTypesOptions {
  std::int64_t min_partition = 32;              ///< least columns of a block, see enumerate()
  std::optional<MachineConstants> constants{};  ///< none: fitted to the simulator's models
  /// No proposer goes on after this much work, as GreedyPartitioner counts it: the place of
  /// TorchRec's timeout. 60 tables on 4 devices take some 100,000.
  std::int64_t max_work = 10'000'000;
};

struct ShardingTypesPlan {
  ShardingPlan plan{};
  std::vector<ShardingType> types{};  ///< of each table
  double rating_ms = 0.0;             ///< of the slowest device, by the estimate
  std::int64_t num_proposals = 0;     ///< that were partitioned
  bool stopped_by_clock = false;      ///< before all of them were
};

/// The best-rated plan of all proposals, or of those before the clock stopped. Throws
/// InfeasibleError if none fits into memory, which says what the last one had no room for, and
/// TimeIsOver if none did so far.
[[nodiscard]] ShardingTypesPlan plan_sharding_types(const Simulator& simulator,
                                                    const ShardingTypesOptions& options,
                                                    const StopClock& clock = {});

}  // namespace neuroshard::torchrec
