// A planner after TorchRec's EmbeddingShardingPlanner: enumerate, propose, partition.
#pragma once

#include <cstdint>
#include <string_view>

#include "neuroshard/search/planner.h"

namespace neuroshard {

struct TorchRecLikeOptions {
  std::int64_t min_shard_columns = 32;  ///< column-wise shards are no narrower
};

/// "torchrec-like": plans of plan_sharding_types, TorchRec's sharding types, formulas, proposers
/// and partitioner, with constants fitted to the cost models in use. Of the types it has those
/// that cuts, task and table allow (PlannerOptions::cuts): with columns alone table_wise,
/// column_wise and table_column_wise.
class TorchRecLikePlanner : public Planner {
 public:
  explicit TorchRecLikePlanner(const TorchRecLikeOptions& options = {}) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "torchrec-like"; }
  /// Throws InfeasibleError if no proposal fits into memory, or none had when the clock of the
  /// options stopped. Stopped later, the plan is the best so far (SearchStats::stopped_by_clock).
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  TorchRecLikeOptions options_;
};

}  // namespace neuroshard
