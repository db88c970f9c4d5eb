// Slices of rows.
#include "neuroshard/workload/reuse/row_slice.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "neuroshard/core/piece.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "neuroshard/workload/reuse/rate_class.h"

namespace neuroshard {

namespace {

/// The classes' rows times `share`, made whole.
std::vector<AccessClass> sliced(const std::vector<AccessClass>& classes, double share) {
  std::vector<RateClass> rates;
  for (const AccessClass& access_class : classes) {
    const auto rows = static_cast<double>(access_class.num_embeddings);
    if (rows > 0.0) rates.push_back({access_class.access_share / rows, rows * share});
  }
  return whole_rows(std::move(rates));
}

/// Lookups of a sample in a slice that has none.
constexpr double kLeastPoolingFactor = 1e-6;

std::int64_t total_rows(const std::vector<AccessClass>& classes) {
  std::int64_t rows = 0;
  for (const AccessClass& access_class : classes) rows += access_class.num_embeddings;
  return rows;
}

}  // namespace

Table row_slice(const Table& table, std::int64_t batch_size, double share) {
  assert(share > 0.0 && share <= 1.0);
  if (share >= 1.0) return table;
  Table slice = table;
  slice.row_order = RowOrder::hashed;
  slice.row_access.clear();
  slice.num_embeddings = rows_of_share(table.num_embeddings, share);
  slice.pooling_factor = table.pooling_factor * share;
  const std::optional<IndexDistribution>& distribution = table.index_distribution;
  const bool has_classes = distribution && !distribution->access_classes.empty();
  const bool has_zipf = distribution && !has_classes && distribution->zipf_exponent > 0.0;
  if (has_classes) {
    slice.index_distribution->access_classes = sliced(distribution->access_classes, share);
    // Rounding may leave a row more in the classes than in the slice.
    slice.num_embeddings =
        std::max(slice.num_embeddings, total_rows(slice.index_distribution->access_classes));
  } else if (has_zipf) {
    slice.reuse_histogram = reuse_histogram(table, batch_size);
    slice.index_distribution.reset();
  }
  return slice;
}

double pooling_factor_of_slice(double pooling_factor, double access_share) {
  return std::max(pooling_factor * access_share, kLeastPoolingFactor);
}

Table row_slice(const Table& table, const AccessByRow& accesses, std::int64_t first,
                std::int64_t count) {
  const double share = accesses.range(first, count).share;
  Table slice = table;
  slice.num_embeddings = count;
  slice.pooling_factor = pooling_factor_of_slice(table.pooling_factor, share);
  slice.row_access.clear();
  slice.reuse_histogram.reset();
  slice.index_distribution.reset();
  std::vector<RateClass> rates = accesses.rows(first, count);
  std::erase_if(rates, [](const RateClass& rows) { return rows.rate <= 0.0 || rows.rows <= 0.0; });
  if (rates.empty()) return slice;  // never used
  slice.index_distribution.emplace();
  slice.index_distribution->access_classes = whole_rows(std::move(rates), count);
  return slice;
}

}  // namespace neuroshard
