// A typical device of a task, and what pieces add to it.
#include "neuroshard/cost/cost_shares.h"

#include <algorithm>
#include <cstddef>

#include "neuroshard/cost/cost_value.h"

namespace neuroshard {

namespace {

/// Throws InputError unless it is a cost; `of` says what of.
template <typename Model>
double cost_of(const Model& model, const char* of, double ms) {
  if (!is_cost(ms)) throw not_a_cost(model.name(), of, ms);
  return ms;
}

}  // namespace

CostShares::CostShares(const Simulator& simulator) : simulator_(simulator) {
  const Task& task = simulator.task();
  const std::size_t num_tables = task.tables.size();
  const auto typical_devices =
      static_cast<double>(std::min<std::size_t>(task.topology.world_size, num_tables));
  std::vector<std::vector<double>> pieces(num_tables);
  std::vector<std::vector<double>> copies(num_tables);
  double columns = 0.0;
  for (std::size_t t = 0; t < num_tables; ++t) {
    const Table& table = task.tables[t];
    pieces[t].resize(simulator.compute().state_size());
    copies[t].resize(simulator.compute().state_size());
    simulator.encode(static_cast<int>(t), table.embedding_dim, pieces[t]);
    simulator.encode_replica(static_cast<int>(t), copies[t]);
    columns += static_cast<double>(pooled_columns(table, table.embedding_dim)) / typical_devices;
  }
  pieces_ = crowd_of(pieces, 1.0 / typical_devices);
  copies_ = crowd_of(copies, 1.0);

  const CommunicationCostModel& links = simulator.communication();
  const std::vector<double> on_each(task.topology.world_size, columns);
  const std::vector<double> together(task.topology.world_size, 0.0);
  std::vector<double> ms(task.topology.world_size);
  const auto per_column = [&](const char* of) {
    return cost_of(links, of, *std::max_element(ms.begin(), ms.end())) / columns;
  };
  links.forward(task.topology, task.batch_size, on_each, together, ms);
  forward_ms_per_column_ = per_column("the forward all-to-all");
  links.backward(task.topology, task.batch_size, on_each, ms);
  backward_ms_per_column_ = per_column("the backward all-to-all");
}

CostShares::Crowd CostShares::crowd_of(const std::vector<std::vector<double>>& contributions,
                                       double share) const {
  const ComputeCostModel& model = simulator_.compute();
  Crowd crowd;
  crowd.state.assign(model.state_size(), 0.0);
  for (const std::vector<double>& contribution : contributions) {
    for (std::size_t i = 0; i < contribution.size(); ++i) {
      crowd.state[i] += share * contribution[i];
    }
  }
  crowd.cost_ms = cost_of(model, "a typical device", model.cost(crowd.state));
  double rises_ms = 0.0;
  for (const std::vector<double>& contribution : contributions) {
    rises_ms += share * rise_ms(crowd, contribution);
  }
  if (rises_ms > 0.0) crowd.scale = crowd.cost_ms / rises_ms;
  return crowd;
}

double CostShares::rise_ms(const Crowd& crowd, std::span<const double> contribution) const {
  const ComputeCostModel& model = simulator_.compute();
  const double alone_ms = cost_of(model, "a piece", model.cost(contribution));
  if (alone_ms >= crowd.cost_ms) return alone_ms;
  const double left = 1.0 - alone_ms / crowd.cost_ms;
  std::vector<double> rest = crowd.state;
  for (double& value : rest) value *= left;
  double with_piece_ms = 0.0;
  model.costs_with(rest, contribution, {&with_piece_ms, 1});
  cost_of(model, "a typical device", with_piece_ms);
  return std::max(with_piece_ms - model.cost(rest), 0.0);
}

CostShare CostShares::of(const Piece& piece, std::int64_t num_slices) const {
  const Task& task = simulator_.task();
  std::vector<double> contribution(simulator_.compute().state_size());
  simulator_.encode(piece, contribution);
  const auto columns =
      static_cast<double>(pooled_columns(task.tables[piece.table], piece.num_columns));
  CostShare share;
  share.compute_ms = pieces_.scale * rise_ms(pieces_, contribution);
  // Every device adds up its own samples' part of every slice: W times that is what a slice takes.
  const double partial_bytes =
      simulator_.partial_bytes_per_column(static_cast<double>(num_slices)) * columns;
  share.forward_comm_ms = forward_ms_per_column_ * columns +
                          simulator_.partial_sums_ms(task.topology.world_size * partial_bytes);
  share.backward_comm_ms = backward_ms_per_column_ * columns;
  return share;
}

CostShare CostShares::of_copy(int table) const {
  const Task& task = simulator_.task();
  const CommunicationCostModel& links = simulator_.communication();
  std::vector<double> contribution(simulator_.compute().state_size());
  simulator_.encode_replica(table, contribution);
  CostShare share;
  share.compute_ms = copies_.scale * rise_ms(copies_, contribution);
  const double bytes = all_reduce_bytes(task, {&table, 1});
  const double once_ms =
      cost_of(links, "the all-reduce", links.all_reduce_ms(task.topology, bytes));
  const double twice_ms =
      cost_of(links, "the all-reduce", links.all_reduce_ms(task.topology, 2.0 * bytes));
  share.backward_comm_ms = std::max(twice_ms - once_ms, 0.0);
  return share;
}

}  // namespace neuroshard
