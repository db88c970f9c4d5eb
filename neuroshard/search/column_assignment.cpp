// Incremental state of a plan under change.
#include "neuroshard/search/column_assignment.h"

#include <algorithm>
#include <cassert>

namespace neuroshard {

ColumnAssignment::ColumnAssignment(const Simulator& simulator, PieceCatalog& catalog,
                                   const ShardingPlan& plan)
    : simulator_(simulator),
      catalog_(catalog),
      devices_(simulator.task().topology.world_size),
      states_(devices_.size() * catalog.state_size(), 0.0),
      compute_ms_(devices_.size(), 0.0),
      columns_(devices_.size(), 0.0) {
  for (const Shard& shard : plan.shards) add(shard.table, shard.num_columns, shard.device);
}

std::int64_t ColumnAssignment::free_bytes(int device) const {
  return simulator_.task().topology.memory_bytes[device] - devices_[device].bytes;
}

void ColumnAssignment::count_piece(int table, std::int64_t num_columns, int device, int sign) {
  const PieceType piece = catalog_.add(table, num_columns);
  const std::size_t size = catalog_.state_size();
  const double* contribution = catalog_.contribution(piece).data();
  double* state = states_.data() + static_cast<std::size_t>(device) * size;
  for (std::size_t i = 0; i < size; ++i) state[i] += sign * contribution[i];
  columns_[device] += static_cast<double>(sign * num_columns);
  devices_[device].bytes += sign * catalog_.bytes(piece);
}

void ColumnAssignment::add(int table, std::int64_t num_columns, int device) {
  std::vector<Holding>& holdings = devices_[device].holdings;
  auto holding = std::lower_bound(holdings.begin(), holdings.end(), table,
                                  [](const Holding& h, int number) { return h.table < number; });
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

const PlanCost& ColumnAssignment::cost() {
  if (cost_known_) return cost_;
  const std::size_t size = catalog_.state_size();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!devices_[d].changed) continue;
    compute_ms_[d] = simulator_.compute().cost({states_.data() + d * size, size});
    devices_[d].changed = false;
    ++head_evaluations_;
  }
  cost_ = simulator_.combine(compute_ms_, columns_);
  cost_known_ = true;
  return cost_;
}

ShardingPlan ColumnAssignment::plan() const {
  ShardingPlan plan;
  std::vector<std::int64_t> next_column(simulator_.task().tables.size(), 0);
  for (int device = 0; device < num_devices(); ++device) {
    for (const Holding& holding : devices_[device].holdings) {
      std::int64_t& offset = next_column[holding.table];
      plan.shards.push_back({holding.table, offset, holding.num_columns, device});
      offset += holding.num_columns;
    }
  }
  sort_shards(plan);
  return plan;
}

}  // namespace neuroshard
