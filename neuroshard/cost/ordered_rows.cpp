// Costs of rows, from those of blocks of rows.
#include "neuroshard/cost/ordered_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neuroshard {

namespace {

/// Within a block of this share of the accesses, every lookup is taken to cost the same.
constexpr std::int64_t kBlocks = 16;

/// What another piece like this adds to what a device with one of them takes [ms].
double added_ms(const ComputeCostModel& compute, const TableStatistics& piece,
                std::int64_t num_columns, const OperatorSettings& settings) {
  std::vector<double> state(compute.state_size());
  compute.encode(piece, num_columns, settings, state);
  const double of_one = compute.cost(state);
  for (double& value : state) value *= 2.0;
  return compute.cost(state) - of_one;
}

RowWeights row_costs(const AccessByRow& accesses, const Table& table,
                     const TableStatistics& statistics, const ComputeCostModel& compute,
                     const OperatorSettings& settings) {
  const auto num_blocks = static_cast<int>(std::min(kBlocks, table.num_embeddings));
  const std::vector<std::int64_t> ends =
      accesses.hits().equal_ends(num_blocks, 1, table.num_embeddings);
  std::vector<RowWeights::Segment> costs;
  double total = 0.0;
  std::size_t next = 0;
  for (std::size_t block = 0; block + 1 < ends.size(); ++block) {
    const RangeAccess range = accesses.range(ends[block], ends[block + 1] - ends[block]);
    const double block_ms =
        added_ms(compute, statistics.slice(range), table.embedding_dim, settings);
    if (!std::isfinite(block_ms) || block_ms < 0.0) return accesses.hits();
    const double of_hit = range.reuse.num_indices > 0.0 ? block_ms / range.reuse.num_indices : 0.0;
    const auto begin = static_cast<double>(ends[block]);
    const auto end = static_cast<double>(ends[block + 1]);
    const auto segments = accesses.segments();
    for (; next < segments.size() && segments[next].first_row < end; ++next) {
      const AccessByRow::Segment& segment = segments[next];
      const double first = std::max(begin, segment.first_row);
      const double last = std::min(end, segment.first_row + segment.num_rows);
      const double hits = segment.hits * (last - first) / segment.num_rows;
      costs.push_back({first, last - first, hits * of_hit});
      total += costs.back().weight;
      if (segment.first_row + segment.num_rows > end) break;  // the next block has the rest
    }
  }
  if (!std::isfinite(total) || total <= 0.0) return accesses.hits();
  return {std::move(costs), table.num_embeddings};
}

}  // namespace

OrderedRows::OrderedRows(Table table, TableStatistics statistics,
                         std::shared_ptr<const ComputeCostModel> compute,
                         const OperatorSettings& settings)
    : table_(std::move(table)),
      statistics_(statistics),
      compute_(std::move(compute)),
      settings_(settings) {}

const AccessByRow& OrderedRows::accesses() const {
  std::call_once(accesses_once_, [this] { accesses_.emplace(table_, settings_.batch_size); });
  return *accesses_;
}

const RowWeights& OrderedRows::costs() const {
  std::call_once(costs_once_, [this] {
    costs_.emplace(row_costs(accesses(), table_, statistics_, *compute_, settings_));
  });
  return *costs_;
}

}  // namespace neuroshard
