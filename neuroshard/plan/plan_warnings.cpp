// The spread of an ensemble on the slowest device, and the piece behind it.
#include "neuroshard/plan/plan_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "neuroshard/plan/plan_models.h"

namespace neuroshard {

namespace {

/// The networks' predictions for a device that has this piece alone.
MemberRange range_of_piece(const Simulator& simulator, const Shard& shard) {
  const ComputeCostModel& model = simulator.compute();
  std::vector<double> state(model.state_size());
  simulator.encode(shard.table, shard.num_columns, state);
  std::vector<double> costs(static_cast<std::size_t>(model.num_members()));
  model.member_costs(state, {}, costs);
  const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
  return {*least, *most};
}

double width(const MemberRange& range) { return range.most_ms - range.least_ms; }

/// "64 columns of table "x" (1.000 to 3.000 ms alone)", of the device's pieces the one that the
/// networks are furthest apart about.
std::string cause(const Simulator& simulator, const ShardingPlan& plan, std::size_t device) {
  const Shard* widest = nullptr;
  MemberRange of_widest;
  for (const Shard& shard : plan.shards) {
    if (static_cast<std::size_t>(shard.device) != device) continue;
    const MemberRange range = range_of_piece(simulator, shard);
    if (widest != nullptr && width(range) <= width(of_widest)) continue;
    widest = &shard;
    of_widest = range;
  }
  if (widest == nullptr) return "";
  return fmt::format(", most about {} columns of table \"{}\" ({:.3f} to {:.3f} ms alone)",
                     widest->num_columns, simulator.task().tables[widest->table].name,
                     of_widest.least_ms, of_widest.most_ms);
}

}  // namespace

std::vector<std::string> disagreement_warnings(const Simulator& simulator, const ShardingPlan& plan,
                                               const PlanCost& predicted,
                                               std::span<const MemberRange> member_ranges) {
  const int members = simulator.compute().num_members();
  if (members < 2) return {};
  const std::vector<DeviceCost>& devices = predicted.devices;
  // Not by the total, in which waiting for the slowest counts: it is nearly the same for all.
  const auto ready_ms = [](const DeviceCost& d) { return d.compute_ms + d.backward_comm_ms; };
  const auto slowest = std::max_element(
      devices.begin(), devices.end(),
      [&](const DeviceCost& a, const DeviceCost& b) { return ready_ms(a) < ready_ms(b); });
  const auto device = static_cast<std::size_t>(slowest - devices.begin());
  const MemberRange range = member_ranges[device];
  if (!(range.spread() > kLargeDisagreement)) return {};
  return {fmt::format(
      "{}: its {} networks disagree by {:.0f}% about device {}, the plan's slowest ({:.3f} to "
      "{:.3f} ms){}",
      simulator.compute().name(), members, 100.0 * range.spread(), device, range.least_ms,
      range.most_ms, cause(simulator, plan, device))};
}

std::vector<std::string> prediction_warnings(const CostModels& models, const Simulator& simulator,
                                             const ShardingPlan& plan, const PlanCost& predicted,
                                             std::span<const MemberRange> member_ranges) {
  std::vector<std::string> lines = model_warnings(models, simulator.task());
  for (std::string& line : disagreement_warnings(simulator, plan, predicted, member_ranges)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> prediction_warnings(const CostModels& models, const Simulator& simulator,
                                             const ShardingPlan& plan) {
  return prediction_warnings(models, simulator, plan, simulator.cost(plan),
                             simulator.member_ranges(plan));
}

}  // namespace neuroshard
