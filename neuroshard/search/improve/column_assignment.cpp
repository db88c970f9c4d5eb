// Incremental state of a plan under change.
#include "neuroshard/search/improve/column_assignment.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "neuroshard/cost/compute/head_kernel.h"

namespace neuroshard {

ColumnAssignment::ColumnAssignment(const Simulator& simulator, PieceCatalog& catalog,
                                   const ShardingPlan& plan, const StopClock& clock)
    : simulator_(simulator),
      catalog_(catalog),
      devices_(simulator.task().topology.world_size),
      states_(catalog.state_size(), devices_.size()),
      compute_ms_(devices_.size(), 0.0),
      columns_(devices_.size(), 0.0) {
  PatientClock patient(clock);
  for (const Shard& shard : plan.shards) {
    patient.check();
    add(shard.table, shard.num_columns, shard.device);
  }
}

std::int64_t ColumnAssignment::free_bytes(int device) const {
  return simulator_.task().topology.memory_bytes[device] - devices_[device].bytes;
}

namespace {

template <typename Pieces>
auto find_table(Pieces& holdings, int table) {
  return std::lower_bound(holdings.begin(), holdings.end(), table,
                          [](const Piece& piece, int number) { return piece.table < number; });
}

}  // namespace

std::int64_t ColumnAssignment::columns_of(int table, int device) const {
  const std::vector<Piece>& holdings = devices_[device].holdings;
  const auto holding = find_table(holdings, table);
  return holding != holdings.end() && holding->table == table ? holding->num_columns : 0;
}

std::int64_t ColumnAssignment::memory_change(int table, std::int64_t num_columns,
                                             int device) const {
  const Task& task = simulator_.task();
  const std::int64_t before = columns_of(table, device);
  const std::int64_t after = before + num_columns;
  const auto bytes = [&](std::int64_t columns) {
    return columns == 0 ? 0 : shard_bytes(task.tables[table], columns, task.optimizer);
  };
  return bytes(after) - bytes(before);
}

void ColumnAssignment::count_piece(int table, std::int64_t num_columns, int device, int sign) {
  const PieceType piece = catalog_.add(table, num_columns);
  const std::span<double> sums = state(device);
  (sign > 0 ? kernels::add : kernels::subtract)(sums.data(), catalog_.contribution(piece).data(),
                                                sums.size());
  devices_[device].columns += static_cast<double>(sign * catalog_.pooled_columns(piece));
  devices_[device].bytes += sign * catalog_.bytes(piece);
  partial_bytes_ += sign * catalog_.partial_bytes(piece);
}

void ColumnAssignment::add(int table, std::int64_t num_columns, int device) {
  std::vector<Piece>& holdings = devices_[device].holdings;
  auto holding = find_table(holdings, table);
  if (holding == holdings.end() || holding->table != table) {
    holding = holdings.insert(holding, {table, 0});
  } else {
    count_piece(table, holding->num_columns, device, -1);
  }
  holding->num_columns += num_columns;
  assert(holding->num_columns >= 0);
  if (holding->num_columns > 0) {
    count_piece(table, holding->num_columns, device, 1);
  } else {
    holdings.erase(holding);
  }
  devices_[device].changed = true;
  cost_known_ = false;
}

void ColumnAssignment::apply(const Transfer& transfer) {
  assert(transfer.from != transfer.to && transfer.num_columns > 0);
  add(transfer.table, -transfer.num_columns, transfer.from);
  add(transfer.table, transfer.num_columns, transfer.to);
}

void ColumnAssignment::remember(int one, int other) {
  refresh();
  for (std::size_t i = 0; i < remembered_.size(); ++i) {
    Remembered& slot = remembered_[i];
    slot.number = i == 0 ? one : other;
    slot.device = devices_[slot.number];
    const std::span<const double> sums = state(slot.number);
    slot.state.assign(sums.begin(), sums.end());
    slot.compute_ms = compute_ms_[slot.number];
  }
  remembered_partial_bytes_ = partial_bytes_;
  remembered_cost_known_ = cost_known_;
  if (cost_known_) std::swap(remembered_cost_, cost_);
}

void ColumnAssignment::roll_back() {
  for (Remembered& slot : remembered_) {
    std::swap(devices_[slot.number], slot.device);
    std::copy(slot.state.begin(), slot.state.end(), state(slot.number).begin());
    compute_ms_[slot.number] = slot.compute_ms;
  }
  partial_bytes_ = remembered_partial_bytes_;
  cost_known_ = remembered_cost_known_;
  if (cost_known_) std::swap(remembered_cost_, cost_);
}

double ColumnAssignment::floor_ms(double columns) const {
  const Task& task = simulator_.task();
  return simulator_.communication().floor_ms(task.topology, task.batch_size, columns);
}

void ColumnAssignment::refresh(int device) {
  compute_ms_[device] = simulator_.compute().cost(state(device));
  devices_[device].floor_ms = floor_ms(devices_[device].columns);
  devices_[device].changed = false;
  ++head_evaluations_;
}

void ColumnAssignment::refresh() {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d].changed) refresh(static_cast<int>(d));
  }
}

double ColumnAssignment::floor_with(int table, std::int64_t num_columns, int device) {
  if (columns_of(table, device) == 0) {
    const PieceType piece = catalog_.add(table, num_columns);
    double compute_ms = 0.0;
    simulator_.compute().costs_with(state(device), catalog_.contribution(piece), {&compute_ms, 1});
    ++head_evaluations_;
    return compute_ms +
           floor_ms(devices_[device].columns + static_cast<double>(catalog_.pooled_columns(piece)));
  }
  add(table, num_columns, device);
  refresh(device);
  const double result = compute_ms_[device] + devices_[device].floor_ms;
  add(table, -num_columns, device);
  return result;
}

const PlanCost& ColumnAssignment::cost() {
  if (cost_known_) return cost_;
  refresh();
  for (std::size_t d = 0; d < devices_.size(); ++d) columns_[d] = devices_[d].columns;
  cost_ =
      simulator_.combine(compute_ms_, columns_, 0.0, simulator_.partial_sums_ms(partial_bytes_));
  cost_known_ = true;
  return cost_;
}

ColumnAssignment::Floor ColumnAssignment::floor() {
  refresh();
  Floor floor;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    floor.cost_ms = std::max(floor.cost_ms, compute_ms_[d] + devices_[d].floor_ms);
    floor.compute_sum_ms += compute_ms_[d];
  }
  return floor;
}

ShardingPlan ColumnAssignment::plan() const {
  ShardingPlan plan;
  std::vector<std::int64_t> next_column(simulator_.task().tables.size(), 0);
  for (int device = 0; device < num_devices(); ++device) {
    for (const Piece& holding : devices_[device].holdings) {
      std::int64_t& offset = next_column[holding.table];
      plan.shards.push_back({holding.table, offset, holding.num_columns, device});
      offset += holding.num_columns;
    }
  }
  sort_shards(plan);
  return plan;
}

}  // namespace neuroshard
