// Pieces taken away, one table's at a time.
#include "neuroshard/decide/priced_pieces.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "neuroshard/core/slowest_device.h"
#include "neuroshard/cost/compute/remembering_compute_model.h"

namespace neuroshard {

namespace {

/// A device's total, without waiting for others to enter the forward all-to-all.
double own_ms(const PlanCost& cost, int device) {
  const DeviceCost& of = cost.devices[device];
  return of.total_ms() - (last_entered_ms(cost.devices) - entered_ms(of));
}

}  // namespace

PricedPieces::PricedPieces(const PricedPlan& priced)
    : simulator_({priced.document.task, priced.models.compute, priced.models.communication},
                 std::make_shared<RememberingComputeModel>(priced.models.compute)),
      plan_(priced.document.plan),
      cost_(*priced.document.predicted),
      replicas_(simulator_.replica_cost(plan_.replicated_tables)),
      partial_sums_ms_(simulator_.partial_sums_ms(plan_)),
      is_sliced_(simulator_.task().tables.size()) {
  for (const Shard& shard : plan_.shards) {
    const Table& table = simulator_.task().tables[shard.table];
    if (shard.rows_of(table) != table.num_embeddings) is_sliced_[shard.table] = true;
  }
}

double PricedPieces::less_without(const std::function<bool(const Shard&)>& is_without) const {
  ShardingPlan plan = plan_;
  std::erase_if(plan.shards, is_without);
  return cost_.cost_ms - simulator_.cost(plan).cost_ms;
}

double PricedPieces::less_without_copies(int table) const {
  ShardingPlan plan = plan_;
  std::erase(plan.replicated_tables, table);
  return cost_.cost_ms - simulator_.cost(plan).cost_ms;
}

TableOnDevice PricedPieces::part(int table, int device) const { return part_of(table, on(device)); }

std::vector<TableOnDevice> PricedPieces::parts_on(int device) const {
  const OnDevice all = on(device);
  std::vector<TableOnDevice> parts;
  for (const auto& [table, pieces] : all.pieces) parts.push_back(part_of(table, all));
  std::stable_sort(parts.begin(), parts.end(), [](const TableOnDevice& a, const TableOnDevice& b) {
    return a.less_device_ms > b.less_device_ms;
  });
  return parts;
}

PricedPieces::OnDevice PricedPieces::on(int device) const {
  OnDevice result{.device = device};
  result.state.resize(simulator_.compute().state_size());
  for (const Shard& shard : plan_.shards) {
    if (shard.device != device) continue;
    result.pieces[shard.table].push_back(shard);
    add_contribution(shard, result.state);
  }
  return result;
}

void PricedPieces::add_contribution(const Shard& shard, std::vector<double>& state) const {
  std::vector<double> contribution(state.size());
  simulator_.encode(piece_of(simulator_.task(), shard), contribution);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += contribution[i];
}

TableOnDevice PricedPieces::part_of(int table, const OnDevice& all) const {
  const Task& task = simulator_.task();
  const Table& of = task.tables[table];
  TableOnDevice part;
  part.table = of.name;
  part.device = all.device;
  const auto pieces = all.pieces.find(table);
  if (pieces == all.pieces.end()) return part;
  std::vector<double> own(all.state.size(), 0.0);
  double pooled = 0.0;
  for (const Shard& shard : pieces->second) {
    add_contribution(shard, own);
    ++part.pieces;
    part.num_columns += shard.num_columns;
    part.bytes += shard_bytes(of, shard.num_columns, task.optimizer, shard.rows_of(of));
    part.lookups += simulator_.statistics_of(piece_of(task, shard)).pooling_factor;
    pooled += static_cast<double>(pooled_columns(of, shard.num_columns));
  }
  std::vector<double> rest = all.state;  // sums of contributions are exact
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= own[i];
  const double rest_ms = simulator_.compute().cost(rest);
  part.alone_ms = simulator_.compute().cost(own);
  part.less_compute_ms = simulator_.compute().cost(all.state) - rest_ms;
  const PlanCost without = cost_without(table, all.device, rest_ms, pooled);
  part.less_device_ms = own_ms(cost_, all.device) - own_ms(without, all.device);
  part.less_plan_ms = cost_.cost_ms - without.cost_ms;
  return part;
}

PlanCost PricedPieces::cost_without(int table, int device, double rest_ms, double pooled) const {
  std::vector<double> compute_ms;
  std::vector<double> columns;
  for (const DeviceCost& of : cost_.devices) {
    compute_ms.push_back(of.compute_ms);
    columns.push_back(static_cast<double>(of.num_columns));
  }
  compute_ms[device] = rest_ms + replicas_.compute_ms;
  columns[device] -= pooled;
  double partial_sums_ms = partial_sums_ms_;
  if (is_sliced_[table]) {
    ShardingPlan others = plan_;
    std::erase_if(others.shards, [&](const Shard& shard) {
      return shard.table == table && shard.device == device;
    });
    partial_sums_ms = simulator_.partial_sums_ms(others);
  }
  return simulator_.combine(compute_ms, columns, replicas_.all_reduce_ms, partial_sums_ms);
}

}  // namespace neuroshard
