// A planner after TorchRec's EmbeddingShardingPlanner: enumerate, propose, partition.
#pragma once

#include <string_view>

#include "neuroshard/baselines/torchrec/sharding_types_plan.h"
#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct TorchRecLikeOptions {
  std::int64_t min_shard_columns = 32;  ///< column-wise shards are no narrower
  // Of plans that cut columns alone:
  int max_proposals = 1000;                 ///< lists of options that are partitioned
  int patience = 100;                       ///< proposals without a better plan before it stops
  std::string_view hardware = "a100-40gb";  ///< for the rating, see find_compute_hardware
  std::string_view interconnect = "a100-nvswitch";  ///< for the rating, see find_interconnect
};

/// "torchrec-like". Where tables may have slices of rows or be replicated (PlannerOptions::cuts,
/// task and table together), plans are those of plan_sharding_types: TorchRec's sharding types,
/// formulas, proposers and partitioner, with constants fitted to the cost models in use.
///
/// Where they may not, it is an idea of that in the paper's space of columns: every table's options
/// are table-wise, and column-wise in 2, 4, 8, ... equal shards. Proposals are first the uniform
/// ones (every table in as many shards, where it can be), then greedy ones: from all tables whole,
/// the table with the slowest shard is taken to its next option. Each proposal is partitioned
/// greedily (slowest shard first, to the device of least time that has room) and rated by its
/// slowest device; the best-rated plan is the result.
///
/// The rating of a shard of c columns of element size e, W devices, batch B, n = B * pooling
/// factor, is bytes over bandwidth only, blind to reuse, caches and fusion:
///   forward  = (8 n + n c e + 4 B c) / memory bandwidth
///   backward = 2 * forward                      (TorchRec's multiplier)
///   comm     = 2 * 4 B c * (W - 1) / W / bandwidth of the slowest level that is in use
/// with line rates, of which devices on one card have equal shares.
class TorchRecLikePlanner : public Planner {
 public:
  /// Throws InputError for a name that is not known.
  explicit TorchRecLikePlanner(const TorchRecLikeOptions& options = {});

  [[nodiscard]] std::string_view name() const override { return "torchrec-like"; }
  /// Throws InfeasibleError if no proposal fits into memory, or none had when the clock of the
  /// options stopped. Stopped later, the plan is the best so far (SearchStats::stopped_by_clock).
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions& options) const override;

 private:
  [[nodiscard]] PlanningResult plan_columns(const Simulator& simulator,
                                            const StopClock& clock) const;
  [[nodiscard]] PlanningResult plan_types(const Simulator& simulator, const StopClock& clock) const;

  TorchRecLikeOptions options_;
  ComputeHardware hardware_;
  Interconnect interconnect_;
};

}  // namespace neuroshard
