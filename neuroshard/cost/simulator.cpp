// The simulator: puts a plan's computation and its two all-to-alls together into its cost.
#include "neuroshard/cost/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/cost_value.h"
#include "neuroshard/cost/ordered_rows.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

/// Partial sums are counted in multiples of this [bytes], so that their sums are exact.
constexpr double kPartialBytesGrid = 0x1p-10;

/// With each table allowing the cuts that it may have, so that what plans need not ask the task.
Task with_own_cuts(Task task) {
  const std::vector<Cuts> allowed = allowed_cuts(task);
  for (std::size_t t = 0; t < allowed.size(); ++t) task.tables[t].allow = allowed[t];
  return task;
}

Task validated(Task task) {
  validate(task);
  return with_own_cuts(std::move(task));
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
                     std::shared_ptr<const CommunicationCostModel> communication,
                     const StopClock& clock)
    : task_(validated(std::move(task))),
      compute_(present(std::move(compute), "a computation cost model")),
      communication_(present(std::move(communication), "a communication cost model")),
      statistics_(table_statistics(task_, clock)),
      settings_(operator_settings(task_, *compute_, statistics_, clock)) {
  for (std::size_t t = 0; t < task_.tables.size(); ++t) {
    const Table& table = task_.tables[t];
    ordered_rows_.push_back(has_row_order(table) ? std::make_shared<const OrderedRows>(
                                                       table, statistics_[t], compute_, settings_)
                                                 : nullptr);
  }
}

// NOLINTNEXTLINE(modernize-pass-by-value): the copy is made by the constructor that is called
Simulator::Simulator(const Simulator& other, std::shared_ptr<const ComputeCostModel> compute)
    : Simulator(other) {
  compute_ = present(std::move(compute), "a computation cost model");
}

Simulator::Simulator(const Simulator& other, Task task, std::span<const Piece> slices,
                     std::vector<double> partial_bytes_per_column, const ReplicaCost& fixed,
                     const StopClock& clock)
    : task_(with_own_cuts(std::move(task))),
      compute_(other.compute_),
      communication_(other.communication_),
      partial_bytes_per_column_(std::move(partial_bytes_per_column)),
      fixed_(fixed) {
  assert(slices.size() == task_.tables.size());
  assert(partial_bytes_per_column_.size() == task_.tables.size());
  for (double& bytes : partial_bytes_per_column_) {
    bytes = std::round(bytes / kPartialBytesGrid) * kPartialBytesGrid;
  }
  PatientClock patient(clock);
  for (const Piece& slice : slices) {
    patient.check();
    const bool has_order = has_row_order(task_.tables[statistics_.size()]);
    statistics_.push_back(other.statistics_of(slice));
    ordered_rows_.push_back(has_order ? other.ordered_rows_[slice.table] : nullptr);
    if (!other.members_.empty()) members_.push_back(other.members_[slice.table]);
  }
  settings_ = operator_settings(task_, *compute_, statistics_, clock);
  // The sum of the members' contributions is exact on the other's grid.
  if (!members_.empty()) settings_.grid = std::max(settings_.grid, other.settings_.grid);
}

Simulator::Simulator(const Simulator& other, Task task,
                     const std::vector<std::vector<int>>& members)
    : task_(with_own_cuts(std::move(task))),
      compute_(other.compute_),
      communication_(other.communication_),
      settings_(other.settings_),
      fixed_(other.fixed_) {
  assert(members.size() == task_.tables.size() && other.members_.empty());
  for (const std::vector<int>& tables : members) {
    statistics_.push_back(other.statistics_[tables.front()]);
    ordered_rows_.push_back(tables.size() == 1 ? other.ordered_rows_[tables.front()] : nullptr);
    members_.emplace_back();
    if (tables.size() == 1) continue;
    for (const int table : tables) {
      members_.back().push_back(
          {other.statistics_[table], other.task_.tables[table].embedding_dim});
    }
  }
}

Simulator Simulator::with_cuts(const Cuts& cuts) const {
  Simulator result = *this;
  result.task_.allow = result.task_.allow & cuts;
  for (Table& table : result.task_.tables) table.allow = table.allow & cuts;
  return result;
}

void Simulator::encode(int table, std::int64_t num_columns, std::span<double> contribution) const {
  if (!members_.empty() && !members_[table].empty()) {
    return encode_members(members_[table], contribution);
  }
  compute_->encode(statistics_[table], num_columns, settings_, contribution);
}

void Simulator::encode_members(std::span<const Member> members,
                               std::span<double> contribution) const {
  std::vector<double> one(contribution.size());
  std::fill(contribution.begin(), contribution.end(), 0.0);
  for (const Member& member : members) {
    compute_->encode(member.statistics, member.num_columns, settings_, one);
    for (std::size_t i = 0; i < one.size(); ++i) contribution[i] += one[i];
  }
}

void Simulator::encode(const Piece& piece, std::span<double> contribution) const {
  if (piece.row_share >= 1.0) return encode(piece.table, piece.num_columns, contribution);
  encode(statistics_of(piece), piece.num_columns, contribution);
}

void Simulator::encode(const TableStatistics& rows, std::int64_t num_columns,
                       std::span<double> contribution) const {
  compute_->encode(rows, num_columns, settings_, contribution);
}

TableStatistics Simulator::statistics_of(const Piece& piece) const {
  const TableStatistics& whole = statistics_[piece.table];
  const auto& ordered = ordered_rows_[piece.table];
  if (piece.num_rows == 0 || !ordered) return whole.slice(piece.row_share, task_.batch_size);
  return whole.slice(ordered->accesses().range(piece.row_offset, piece.num_rows));
}

std::int64_t Simulator::largest_memory(const Table& table) const {
  const std::vector<std::int64_t>& memory = task_.topology.memory_bytes;
  if (table.devices.empty()) return *std::max_element(memory.begin(), memory.end());
  std::int64_t most = 0;
  for (const int device : table.devices) most = std::max(most, memory[device]);
  return most;
}

std::vector<std::int64_t> Simulator::slice_ends(int table, int num_slices) const {
  const Table& of = task_.tables[table];
  if (num_slices == 1) return {0, of.num_embeddings};
  if (const auto& ordered = ordered_rows_[table]) {
    const std::int64_t least = std::max<std::int64_t>(of.min_shard_rows, 1);
    const std::int64_t most =
        rows_within(largest_memory(of), of, of.embedding_dim, task_.optimizer);
    return ordered->costs().equal_ends(num_slices, least, most);
  }
  const std::int64_t rows = of.num_embeddings / num_slices;
  const std::int64_t longer = of.num_embeddings % num_slices;
  std::vector<std::int64_t> ends;
  for (std::int64_t slice = 0; slice <= num_slices; ++slice) {
    ends.push_back(slice * rows + std::min(slice, longer));
  }
  return ends;
}

void Simulator::encode_replica(int table, std::span<double> contribution) const {
  OperatorSettings settings = settings_;
  settings.batch_size = replica_batch_size(task_);
  const Table of = for_any_batch_size(task_.tables[table], task_.batch_size);
  compute_->encode(table_statistics(of, settings.batch_size), of.embedding_dim, settings,
                   contribution);
}

std::vector<double> Simulator::replica_state(std::span<const int> tables) const {
  std::vector<double> state(compute_->state_size(), 0.0);
  std::vector<double> contribution(state.size());
  for (const int table : tables) {
    encode_replica(table, contribution);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += contribution[i];
  }
  return state;
}

Simulator::ReplicaCost Simulator::replica_cost(std::span<const int> tables) const {
  if (tables.empty()) return {};
  return replica_cost(tables, replica_state(tables));
}

Simulator::ReplicaCost Simulator::replica_cost(std::span<const int> tables,
                                               std::span<const double> state) const {
  if (tables.empty()) return {};
  const ReplicaCost cost{
      compute_->cost(state),
      communication_->all_reduce_ms(task_.topology, all_reduce_bytes(task_, tables))};
  if (!is_cost(cost.compute_ms)) {
    throw not_a_cost(compute_->name(), "the replicated tables", cost.compute_ms);
  }
  if (!is_cost(cost.all_reduce_ms)) {
    throw not_a_cost(communication_->name(), "the all-reduce", cost.all_reduce_ms);
  }
  return cost;
}

double Simulator::partial_bytes_per_column(double num_slices) const {
  if (num_slices <= 1.0) return 0.0;
  const double bytes =
      4.0 * static_cast<double>(replica_batch_size(task_)) * (1.0 + 1.0 / num_slices);
  return std::round(bytes / kPartialBytesGrid) * kPartialBytesGrid;
}

double Simulator::partial_sums_ms(const ShardingPlan& plan) const {
  double bytes = partial_sum_bytes(task_, plan);
  for (const Shard& shard : plan.shards) {
    bytes += partial_bytes_per_column_of(shard.table) *
             static_cast<double>(pooled_columns(task_.tables[shard.table], shard.num_columns));
  }
  return partial_sums_ms(bytes);
}

double Simulator::partial_sums_ms(double bytes) const {
  if (bytes <= 0.0) return 0.0;
  const double ms = communication_->partial_sums_ms(bytes);
  if (!is_cost(ms)) throw not_a_cost(communication_->name(), "the addition of partial sums", ms);
  return ms;
}

PlanCost Simulator::combine(std::span<const double> compute_ms, std::span<const double> columns,
                            double all_reduce_ms, double partial_sums_ms) const {
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
  all_reduce_ms += fixed_.all_reduce_ms;
  for (std::size_t d = 0; d < world_size; ++d) {
    start_ms[d] = backward_ms[d] + compute_ms[d] + fixed_.compute_ms + all_reduce_ms;
  }
  const double earliest = *std::min_element(start_ms.begin(), start_ms.end());
  for (double& start : start_ms) start -= earliest;
  communication_->forward(task_.topology, task_.batch_size, columns, start_ms, forward_ms);
  require_costs(forward_ms, *communication_, "forward all-to-all");

  PlanCost result;
  result.devices.resize(world_size);
  for (std::size_t d = 0; d < world_size; ++d) {
    DeviceCost& device = result.devices[d];
    device.compute_ms = compute_ms[d] + fixed_.compute_ms;
    device.all_reduce_ms = all_reduce_ms;
    device.backward_comm_ms = backward_ms[d];
    device.forward_comm_ms = forward_ms[d] + partial_sums_ms;
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
  std::optional<Piece> encoded;  // slices and pieces of equal columns often follow each other
  for (const Shard& shard : plan.shards) {
    const Piece piece = piece_of(task_, shard);
    if (encoded != piece) encode(piece, contribution);
    encoded = piece;
    double* state = states.data() + shard.device * state_size;
    for (std::size_t i = 0; i < state_size; ++i) state[i] += contribution[i];
  }
  return states;
}

PlanCost Simulator::cost(const ShardingPlan& plan) const {
  std::vector<double> compute_ms(task_.topology.world_size);
  compute_->costs_with(device_states(plan), {}, compute_ms);
  const double replicas_ms = replica_cost(plan.replicated_tables).compute_ms;
  for (double& ms : compute_ms) ms += replicas_ms;
  return cost(plan, compute_ms);
}

std::vector<MemberRange> Simulator::member_ranges(const ShardingPlan& plan) const {
  const std::size_t num_members = compute_->num_members();
  std::vector<double> costs(task_.topology.world_size * num_members);
  compute_->member_costs(device_states(plan), {}, costs);
  if (!plan.replicated_tables.empty()) {
    std::vector<double> replicas(num_members);
    compute_->member_costs(replica_state(plan.replicated_tables), {}, replicas);
    for (std::size_t i = 0; i < costs.size(); ++i) costs[i] += replicas[i % num_members];
  }
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
  PlanCost result =
      combine(compute_ms, column_sums(task_, plan),
              replica_cost(plan.replicated_tables).all_reduce_ms, partial_sums_ms(plan));
  const std::vector<std::int64_t> bytes = device_memory(task_, plan);
  for (std::size_t d = 0; d < bytes.size(); ++d) result.devices[d].memory_bytes = bytes[d];
  return result;
}

}  // namespace neuroshard
