// The simulator: puts a plan's computation and its two all-to-alls together into its cost.
#include "neuroshard/cost/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/cost_value.h"

namespace neuroshard {

namespace {

Task validated(Task task) {
  validate(task);
  return task;
}

template <typename Model>
std::shared_ptr<const Model> present(std::shared_ptr<const Model> model, const char* what) {
  if (!model) throw InputError("simulator", what, "none");
  return model;
}

std::vector<double> column_sums(const Task& task, const ShardingPlan& plan) {
  std::vector<double> columns(task.topology.world_size, 0.0);
  for (const Shard& shard : plan.shards) {
    columns[shard.device] +=
        static_cast<double>(pooled_columns(task.tables[shard.table], shard.num_columns));
  }
  return columns;
}

/// Throws InputError unless each is a cost; `of` says what of a device.
template <typename Model>
void require_costs(std::span<const double> ms, const Model& model, const char* of) {
  for (std::size_t d = 0; d < ms.size(); ++d) {
    if (!is_cost(ms[d]))
      throw not_a_cost(model.name(), fmt::format("device {}'s {}", d, of), ms[d]);
  }
}

}  // namespace

Simulator::Simulator(Task task, std::shared_ptr<const ComputeCostModel> compute,
                     std::shared_ptr<const CommunicationCostModel> communication)
    : task_(validated(std::move(task))),
      compute_(present(std::move(compute), "a computation cost model")),
      communication_(present(std::move(communication), "a communication cost model")),
      statistics_(table_statistics(task_)),
      settings_(operator_settings(task_, *compute_, statistics_)) {}

// NOLINTNEXTLINE(modernize-pass-by-value): the copy is made by the constructor that is called
Simulator::Simulator(const Simulator& other, std::shared_ptr<const ComputeCostModel> compute)
    : Simulator(other) {
  compute_ = present(std::move(compute), "a computation cost model");
}

void Simulator::encode(int table, std::int64_t num_columns, std::span<double> contribution) const {
  compute_->encode(statistics_[table], num_columns, settings_, contribution);
}

PlanCost Simulator::combine(std::span<const double> compute_ms,
                            std::span<const double> columns) const {
  const std::size_t world_size = task_.topology.world_size;
  assert(compute_ms.size() == world_size && columns.size() == world_size);
  // The first invalid cost names its model: what follows from it is no other model's fault.
  require_costs(compute_ms, *compute_, "computation");
  // One allocation for all temporaries; the search calls this from many threads.
  std::vector<double> scratch(3 * world_size);
  const std::span<double> backward_ms(scratch.data(), world_size);
  const std::span<double> start_ms(scratch.data() + world_size, world_size);
  const std::span<double> forward_ms(scratch.data() + 2 * world_size, world_size);

  communication_->backward(task_.topology, task_.batch_size, columns, backward_ms);
  require_costs(backward_ms, *communication_, "backward all-to-all");
  for (std::size_t d = 0; d < world_size; ++d) start_ms[d] = backward_ms[d] + compute_ms[d];
  const double earliest = *std::min_element(start_ms.begin(), start_ms.end());
  for (double& start : start_ms) start -= earliest;
  communication_->forward(task_.topology, task_.batch_size, columns, start_ms, forward_ms);
  require_costs(forward_ms, *communication_, "forward all-to-all");

  PlanCost result;
  result.devices.resize(world_size);
  for (std::size_t d = 0; d < world_size; ++d) {
    DeviceCost& device = result.devices[d];
    device.compute_ms = compute_ms[d];
    device.backward_comm_ms = backward_ms[d];
    device.forward_comm_ms = forward_ms[d];
    device.num_columns = std::llround(columns[d]);
    result.cost_ms = std::max(result.cost_ms, device.total_ms());
  }
  if (!is_cost(result.cost_ms)) {  // the sum of costs may leave the range of numbers
    throw not_a_cost(communication_->name() + " and " + compute_->name(), "the plan",
                     result.cost_ms);
  }
  return result;
}

std::vector<double> Simulator::device_states(const ShardingPlan& plan) const {
  const std::size_t state_size = compute_->state_size();
  std::vector<double> states(task_.topology.world_size * state_size, 0.0);
  std::vector<double> contribution(state_size);
  for (const Shard& shard : plan.shards) {
    encode(shard.table, shard.num_columns, contribution);
    double* state = states.data() + shard.device * state_size;
    for (std::size_t i = 0; i < state_size; ++i) state[i] += contribution[i];
  }
  return states;
}

PlanCost Simulator::cost(const ShardingPlan& plan) const {
  std::vector<double> compute_ms(task_.topology.world_size);
  compute_->costs_with(device_states(plan), {}, compute_ms);
  return cost(plan, compute_ms);
}

std::vector<MemberRange> Simulator::member_ranges(const ShardingPlan& plan) const {
  const std::size_t num_members = compute_->num_members();
  std::vector<double> costs(task_.topology.world_size * num_members);
  compute_->member_costs(device_states(plan), {}, costs);
  for (const double ms : costs) {
    if (!is_cost(ms)) throw not_a_cost(compute_->name(), "a device by one of its networks", ms);
  }
  std::vector<MemberRange> ranges;
  for (auto first = costs.begin(); first != costs.end();
       first += static_cast<std::ptrdiff_t>(num_members)) {
    const auto [least, most] =
        std::minmax_element(first, first + static_cast<std::ptrdiff_t>(num_members));
    ranges.push_back({*least, *most});
  }
  return ranges;
}

PlanCost Simulator::cost(const ShardingPlan& plan, std::span<const double> compute_ms) const {
  PlanCost result = combine(compute_ms, column_sums(task_, plan));
  const std::vector<std::int64_t> bytes = device_memory(task_, plan);
  for (std::size_t d = 0; d < bytes.size(); ++d) result.devices[d].memory_bytes = bytes[d];
  return result;
}

}  // namespace neuroshard
