// Inputs of every computation cost model: the tables' statistics and the grid of the states.
#include "neuroshard/cost/compute/compute_cost_model.h"

#include "neuroshard/cost/compute/head_kernel.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

std::vector<TableStatistics> table_statistics(const Task& task) {
  std::vector<TableStatistics> statistics;
  statistics.reserve(task.tables.size());
  for (const Table& table : task.tables) {
    statistics.push_back({.num_embeddings = table.num_embeddings,
                          .pooling_factor = table.pooling_factor,
                          .data_type = table.data_type,
                          .reuse_histogram = reuse_histogram(table, task.batch_size),
                          .num_features = table.num_features});
  }
  return statistics;
}

void round_to_grid(std::span<double> values) {
  kernels::round_to_multiples(values.data(), values.size(), kStateGrid);
}

double ComputeCostModel::add_and_cost(std::span<double> state,
                                      std::span<const double> piece) const {
  kernels::add(state.data(), piece.data(), state.size());
  return cost(state);
}

}  // namespace neuroshard
