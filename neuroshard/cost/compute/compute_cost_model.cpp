// Inputs of every computation cost model: the tables' statistics and the grid of the states.
#include "neuroshard/cost/compute/compute_cost_model.h"

#include <algorithm>
#include <cmath>

#include "neuroshard/core/piece.h"
#include "neuroshard/cost/compute/head_kernel.h"
#include "neuroshard/workload/reuse/access_by_row.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/row_slice.h"

namespace neuroshard {

namespace {

/// Lookups of a slice's hottest row, where it has `share` of each row and the table's hottest has
/// `hottest`: of any number of lookups, the part of a whole row that the slice has of the rows with
/// more, times that number; the largest of these. It never falls with more lookups, as long as the
/// rows with more than any number do not become fewer.
double hottest_hits_of_slice(const TableStatistics& table, double share, double hottest) {
  double rows = 0.0;  // with more lookups than the bins below
  double hits = 0.0;
  for (int bin = kReuseBins; bin-- > 0;) {
    rows += table.distinct_rows * table.reuse_histogram[bin];
    const double most = bin + 1 < kReuseBins ? std::min(std::exp2(bin), hottest) : hottest;
    // There is one such row, whatever part of a row the tail of a distribution leaves in a bin.
    hits = std::max(hits, most * std::min(share * std::max(rows, 1.0), 1.0));
  }
  return hits;
}

}  // namespace

TableStatistics table_statistics(const Table& table, std::int64_t batch_size) {
  const ReuseStatistics reuse = reuse_statistics(table, batch_size);
  return {.num_embeddings = table.num_embeddings,
          .pooling_factor = table.pooling_factor,
          .data_type = table.data_type,
          .reuse_histogram = reuse_histogram(table, reuse),
          .num_features = table.num_features,
          // A histogram may be of more rows than there are.
          .distinct_rows = std::min(reuse.distinct_rows, static_cast<double>(table.num_embeddings)),
          .hottest_row_share = hottest_row_share(table, batch_size)};
}

std::vector<TableStatistics> table_statistics(const Task& task, const StopClock& clock) {
  std::vector<TableStatistics> statistics;
  statistics.reserve(task.tables.size());
  PatientClock patient(clock);
  for (const Table& table : task.tables) {
    patient.check();
    statistics.push_back(table_statistics(table, task.batch_size));
  }
  return statistics;
}

TableStatistics TableStatistics::slice(double share, std::int64_t batch_size) const {
  if (share >= 1.0) return *this;
  TableStatistics result = *this;
  result.num_embeddings = rows_of_share(num_embeddings, share);
  result.pooling_factor *= share;
  result.distinct_rows *= share;
  const double lookups = pooling_factor * static_cast<double>(batch_size);
  const double hits = hottest_hits_of_slice(*this, share, lookups * hottest_row_share);
  result.hottest_row_share = std::min(hits / (lookups * share), 1.0);
  return result;
}

TableStatistics TableStatistics::slice(const RangeAccess& range) const {
  TableStatistics result = *this;
  result.num_embeddings = range.num_rows;
  result.pooling_factor = pooling_factor_of_slice(pooling_factor, range.share);
  result.distinct_rows = range.reuse.distinct_rows;
  result.hottest_row_share = 0.0;
  result.reuse_histogram = {1.0};  // of no lookups
  if (range.reuse.distinct_rows <= 0.0) return result;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    result.reuse_histogram[bin] = range.reuse.rows[bin] / range.reuse.distinct_rows;
  }
  result.hottest_row_share = std::min(range.hottest_row_hits / range.reuse.num_indices, 1.0);
  return result;
}

void round_to_grid(std::span<double> values, double grid) {
  kernels::round_to_multiples(values.data(), values.size(), grid);
}

double ComputeCostModel::largest_element(const TableStatistics& table, std::int64_t num_columns,
                                         const OperatorSettings& settings) const {
  std::vector<double> contribution(state_size());
  encode(table, num_columns, settings, contribution);
  double largest = 0.0;
  for (const double value : contribution) largest = std::max(largest, std::abs(value));
  return largest;
}

OperatorSettings operator_settings(const Task& task, const ComputeCostModel& model,
                                   std::span<const TableStatistics> statistics,
                                   const StopClock& clock) {
  OperatorSettings settings{.batch_size = task.batch_size, .optimizer = task.optimizer};
  double sum = 0.0;
  PatientClock patient(clock);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    patient.check();
    const Table& table = task.tables[t];
    sum += model.largest_element(statistics[t], table.embedding_dim, settings);
    if (!can_cut(table, table.embedding_dim)) continue;
    const std::int64_t narrowest = narrowest_cut(table);
    sum += static_cast<double>(table.embedding_dim / narrowest) *
           model.largest_element(statistics[t], narrowest, settings);
  }
  while (sum * kStateGrid > kLargestExactSum * settings.grid) settings.grid *= 2.0;
  return settings;
}

double ComputeCostModel::tangent(std::span<const double> /*state*/, double /*smoothing*/,
                                 std::span<double> slopes) const {
  std::fill(slopes.begin(), slopes.end(), 0.0);
  return 0.0;
}

double ComputeCostModel::add_and_cost(std::span<double> state,
                                      std::span<const double> piece) const {
  kernels::add(state.data(), piece.data(), state.size());
  return cost(state);
}

}  // namespace neuroshard
