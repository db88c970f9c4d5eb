// Slices of rows become tables for the improvement, and slices again.
#include "neuroshard/search/improved_plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/search/slices/sliced_task.h"

namespace neuroshard {

namespace {

/// Tables whose rows the improvement may cut in other ways: the costliest, which are those that it
/// may pay for.
constexpr int kResliced = 32;

/// The limit on plans of the sliced task, whose replicated tables stay as they are in `plan`.
MoveLimit limit_of_slices(const MoveRules& rules, const SlicedTask& sliced,
                          const ShardingPlan& plan) {
  std::vector<TableOrigin> origins;
  for (std::size_t s = 0; s < sliced.simulator().task().tables.size(); ++s) {
    const Shard part = sliced.part(static_cast<int>(s));
    const TableOrigin& of_table = rules.origins[part.table];
    if (of_table.size() > 1) {
      origins.push_back(of_table);  // tables that stay together are whole
    } else {
      Shard origin = part;
      origin.table = of_table.front().table;
      origins.push_back({origin});
    }
  }
  WideBytes left = rules.limit_bytes;
  // The largest sum stands for all that are larger: with that limit, anything may move.
  if (rules.limit_bytes < std::numeric_limits<std::int64_t>::max()) {
    for (const int table : plan.replicated_tables) {
      left -= rules.before.moved_bytes_of_copies(rules.origins[table].front().table);
    }
  }
  return {rules.before, std::move(origins), saturated(std::max<WideBytes>(left, 0))};
}

}  // namespace

Simulator pessimist(const Simulator& simulator, double pessimism) {
  if (pessimism == 0.0 || simulator.compute().num_members() == 1) return simulator;
  return {simulator,
          std::make_shared<PessimisticComputeModel>(simulator.shared_compute(), pessimism)};
}

double longest_compute_ms(const PlanCost& cost) {
  double longest = 0.0;
  for (const DeviceCost& device : cost.devices) longest = std::max(longest, device.compute_ms);
  return longest;
}

PlanningResult improved_plan(const Simulator& simulator, const ShardingPlan& plan, const Cuts& cuts,
                             const LocalSearchOptions& improvement, const LocalSearchBudget& budget,
                             ThreadPool& pool, const MoveRules* rules) {
  if (plan.shards.empty()) return {plan};  // every table is on every device
  // The improvement itself knows columns of all rows alone.
  const bool has_columns_alone = plan.replicated_tables.empty() && !plan.has_row_slices();
  if (rules == nullptr && !cuts.rows && has_columns_alone) {
    return improve_plan(simulator, plan, improvement, budget, pool);
  }
  const SlicedTask sliced(simulator, plan, cuts.rows ? kResliced : 0, StopClock(budget.deadline));
  if (rules == nullptr) {
    PlanningResult result = improve_plan(sliced.simulator(), sliced.plan(), improvement, budget,
                                         pool, sliced.slicings());
    result.plan = sliced.original(result.plan);
    return result;
  }
  const MoveLimit limit = limit_of_slices(*rules, sliced, plan);
  PlanningResult result = improve_plan(sliced.simulator(), sliced.plan(), improvement, budget, pool,
                                       sliced.slicings(), &limit);
  result.plan = sliced.original(limit.arranged(result.plan));
  return result;
}

}  // namespace neuroshard
