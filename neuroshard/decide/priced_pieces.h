// What a plan would cost without some of its pieces, everything else left where it is.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/decide/explanation.h"
#include "neuroshard/plan/plan_task.h"

namespace neuroshard {

/// A plan with its models, for which equal pieces are encoded once. Keeps references to the plan
/// that it is made of.
class PricedPieces {
 public:
  explicit PricedPieces(const PricedPlan& priced);

  [[nodiscard]] const Simulator& simulator() const { return simulator_; }
  [[nodiscard]] const Simulator::ReplicaCost& replicas() const { return replicas_; }

  /// The plan's cost without some shards, less than with them [ms].
  [[nodiscard]] double less_without(const std::function<bool(const Shard&)>& is_without) const;
  [[nodiscard]] double less_without_copies(int table) const;

  /// Of a table on one device.
  [[nodiscard]] TableOnDevice part(int table, int device) const;

  /// Of every table that the device holds a piece of, the costliest there first. Takes time in
  /// proportion to their number, but for tables in slices of rows.
  [[nodiscard]] std::vector<TableOnDevice> parts_on(int device) const;

 private:
  /// What lies on a device: pieces by table, and the sum of their contributions.
  struct OnDevice {
    int device = 0;
    std::map<int, std::vector<Shard>> pieces{};
    std::vector<double> state{};
  };

  [[nodiscard]] OnDevice on(int device) const;
  void add_contribution(const Shard& shard, std::vector<double>& state) const;
  [[nodiscard]] TableOnDevice part_of(int table, const OnDevice& all) const;

  /// Of the plan without the table's pieces on the device, whose others compute for `rest_ms`, and
  /// which have `pooled` columns of pooled output; memory is left 0.
  [[nodiscard]] PlanCost cost_without(int table, int device, double rest_ms, double pooled) const;

  Simulator simulator_;
  const ShardingPlan& plan_;
  const PlanCost& cost_;
  Simulator::ReplicaCost replicas_;
  double partial_sums_ms_;
  std::vector<bool> is_sliced_;  ///< by table: whether a piece has not all its rows
};

}  // namespace neuroshard
