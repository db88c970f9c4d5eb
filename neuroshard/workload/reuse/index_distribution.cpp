// The closed form of a table's reuse, however its accesses are described.
#include "neuroshard/workload/reuse/index_distribution.h"

#include <algorithm>
#include <cmath>

#include "neuroshard/workload/reuse/histogram_reuse.h"
#include "neuroshard/workload/reuse/poisson_reuse.h"
#include "neuroshard/workload/reuse/zipf_reuse.h"

namespace neuroshard {

namespace {

ReuseStatistics class_reuse(const std::vector<AccessClass>& classes, double num_indices) {
  double total_share = 0.0;  // 1 up to the rounding that input files are allowed
  for (const AccessClass& access_class : classes) total_share += access_class.access_share;
  ReuseStatistics statistics;
  statistics.num_indices = num_indices;
  for (const AccessClass& access_class : classes) {
    const auto rows = static_cast<double>(access_class.num_embeddings);
    const double hits = num_indices * access_class.access_share / total_share;
    const PoissonReuse reuse = poisson_reuse(hits / rows);
    add_rows(statistics, rows, reuse);
    statistics.distinct_rows += rows * reuse.hit;
  }
  return statistics;
}

/// Rows between the points of a measured curve, equally likely. A segment of less than a row is
/// joined with the next.
IndexDistribution distribution_of_row_access(const Table& table) {
  IndexDistribution distribution;
  std::int64_t first = 0;
  double before = 0.0;
  for (const RowAccessPoint& point : table.row_access) {
    std::int64_t end = table.num_embeddings;
    if (point.row_share < 1.0) {
      const std::int64_t nearest =
          std::llround(point.row_share * static_cast<double>(table.num_embeddings));
      end = std::min(nearest, table.num_embeddings - 1);
    }
    if (end == first) continue;
    distribution.access_classes.push_back({end - first, point.access_share - before});
    first = end;
    before = point.access_share;
  }
  return distribution;
}

double lookups(const Table& table, std::int64_t batch_size) {
  return static_cast<double>(batch_size) * table.pooling_factor;
}

}  // namespace

ReuseStatistics reuse_statistics(const Table& table, std::int64_t batch_size) {
  const double num_indices = lookups(table, batch_size);
  if (table.reuse_histogram) {
    return histogram_statistics(*table.reuse_histogram, table.num_embeddings, num_indices);
  }
  const IndexDistribution distribution = resolved_distribution(table, batch_size);
  if (!distribution.access_classes.empty()) {
    return class_reuse(distribution.access_classes, num_indices);
  }
  if (distribution.zipf_exponent > 0.0) {
    return zipf_reuse(distribution.zipf_exponent, table.num_embeddings, num_indices);
  }
  return class_reuse({{table.num_embeddings, 1.0}}, num_indices);
}

ReuseHistogram reuse_histogram(const Table& table, std::int64_t batch_size) {
  if (table.reuse_histogram) return *table.reuse_histogram;
  return reuse_histogram(table, reuse_statistics(table, batch_size));
}

ReuseHistogram reuse_histogram(const Table& table, const ReuseStatistics& statistics) {
  if (table.reuse_histogram) return *table.reuse_histogram;
  ReuseHistogram histogram{};
  if (statistics.distinct_rows ==
      0.0) {  // so few lookups that their share of a row is rounded to 0
    histogram[0] = 1.0;
    return histogram;
  }
  for (int bin = 0; bin < kReuseBins; ++bin) {
    histogram[bin] = statistics.rows[bin] / statistics.distinct_rows;
  }
  return histogram;
}

double hottest_row_share(const Table& table, std::int64_t batch_size) {
  if (table.reuse_histogram) {
    const ReuseStatistics reuse = reuse_statistics(table, batch_size);
    return std::min(hottest_row_hits(reuse) / reuse.num_indices, 1.0);
  }
  const IndexDistribution distribution = resolved_distribution(table, batch_size);
  double hottest = 0.0;
  double total_share = 0.0;
  for (const AccessClass& access_class : distribution.access_classes) {
    total_share += access_class.access_share;
    hottest = std::max(
        hottest, access_class.access_share / static_cast<double>(access_class.num_embeddings));
  }
  if (total_share > 0.0) return hottest / total_share;
  if (distribution.zipf_exponent > 0.0) {
    return 1.0 / zipf_weight(distribution.zipf_exponent, table.num_embeddings);
  }
  return 1.0 / static_cast<double>(table.num_embeddings);
}

IndexDistribution resolved_distribution(const Table& table, std::int64_t batch_size) {
  if (table.index_distribution) return *table.index_distribution;
  if (!table.reuse_histogram) {
    return table.row_access.empty() ? IndexDistribution{} : distribution_of_row_access(table);
  }
  return distribution_of_histogram(*table.reuse_histogram, table.num_embeddings,
                                   lookups(table, batch_size));
}

Table for_any_batch_size(const Table& table, std::int64_t batch_size) {
  if (!table.reuse_histogram) return table;
  Table result = table;
  result.index_distribution = resolved_distribution(table, batch_size);
  result.reuse_histogram.reset();
  return result;
}

}  // namespace neuroshard
