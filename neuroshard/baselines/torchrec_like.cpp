// TorchRec's plan in the types that are allowed, priced like every plan.
#include "neuroshard/baselines/torchrec_like.h"

#include <chrono>
#include <utility>

#include "neuroshard/baselines/placement.h"
#include "neuroshard/baselines/torchrec/sharding_types_plan.h"

namespace neuroshard {

PlanningResult TorchRecLikePlanner::plan(const Simulator& simulator,
                                         const PlannerOptions& options) const {
  const auto start = std::chrono::steady_clock::now();
  const Simulator allowed = simulator.with_cuts(options.cuts);
  torchrec::ShardingTypesOptions types;
  types.min_partition = options_.min_shard_columns;
  try {
    torchrec::ShardingTypesPlan found =
        torchrec::plan_sharding_types(allowed, types, stop_clock_of(options));
    PlanningResult result = priced(allowed, std::move(found.plan), start);
    result.stats.states_expanded = found.num_proposals;
    result.stats.stopped_by_clock = found.stopped_by_clock;
    return result;
  } catch (const TimeIsOver&) {
    throw no_plan_in_time(options);
  }
}

}  // namespace neuroshard
