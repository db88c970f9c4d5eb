// Counting the work of a piece.
#include "neuroshard/cost/compute/piece_work.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

#include "neuroshard/workload/reuse/histogram_reuse.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kVectorColumns = 16;  // the widest vectors in use are as long as a line
/// Fewer lookups than this in a batch are counted as this many, so that logarithms stay finite.
constexpr double kFewestLookups = 0x1p-20;

double distinct_rows_of(const TableStatistics& table, double lookups) {
  const auto rows = static_cast<double>(table.num_embeddings);
  if (table.distinct_rows > 0.0) return std::min({table.distinct_rows, lookups, rows});
  const ReuseStatistics reuse =
      histogram_statistics(table.reuse_histogram, table.num_embeddings, lookups);
  return std::min({reuse.distinct_rows, lookups, rows});
}

double hottest_row_hits_of(const TableStatistics& table, double lookups) {
  if (table.hottest_row_share > 0.0) return lookups * table.hottest_row_share;
  return std::min(
      hottest_row_hits(histogram_statistics(table.reuse_histogram, table.num_embeddings, lookups)),
      lookups);
}

/// Full vectors, then one operation for each of 8, 4, 2 and 1 columns that are left.
double vector_operations_of(std::int64_t num_columns) {
  return static_cast<double>(
      num_columns / kVectorColumns +
      std::popcount(static_cast<std::uint64_t>(num_columns % kVectorColumns)));
}

/// Sum over all counts j of the rows beyond `cached_rows` that are hit at least j times, which is
/// the number of lookups of rows other than the `cached_rows` hottest.
double uncached_lookups_of(const PieceWork& work, double cached_rows) {
  double sum = std::max(work.distinct_rows - cached_rows, 0.0);
  for (int bin = 1; bin < kReuseBins; ++bin) {
    // Counts 2^(bin-1) + 1 to 2^bin; the open last bin is taken to end there too: rows that hot are
    // cached by anything.
    const double counts = std::exp2(bin - 1);
    const double next = bin + 1 < kReuseBins ? work.rows_hit[bin + 1] : work.rows_hit[bin];
    sum += counts * std::max(0.5 * (work.rows_hit[bin] + next) - cached_rows, 0.0);
  }
  return sum;
}

}  // namespace

double mean_row_lines(std::int64_t row_bytes) {
  const std::int64_t step = std::gcd(row_bytes, kLineBytes);
  return static_cast<double>(row_bytes - step) / static_cast<double>(kLineBytes) + 1.0;
}

PieceWork piece_work(const TableStatistics& table, std::int64_t num_columns,
                     const OperatorSettings& settings) {
  PieceWork work;
  work.batch_size = static_cast<double>(settings.batch_size);
  work.lookups = std::max(work.batch_size * table.pooling_factor, kFewestLookups);
  work.distinct_rows = distinct_rows_of(table, work.lookups);
  work.hottest_row_hits = hottest_row_hits_of(table, work.lookups);
  double share = 0.0;
  for (int bin = kReuseBins; bin-- > 0;) {
    share += table.reuse_histogram[bin];
    work.rows_hit[bin] = share * work.distinct_rows;
  }
  const std::int64_t row_bytes = num_columns * element_bytes(table.data_type);
  work.row_bytes = static_cast<double>(row_bytes);
  work.row_lines = mean_row_lines(row_bytes);
  work.vector_operations = vector_operations_of(num_columns);
  const double output_row_bytes =
      static_cast<double>(num_columns) * 4.0 * static_cast<double>(table.num_features);
  work.output_bytes = work.batch_size * output_row_bytes;
  work.table_bytes = work.row_bytes * static_cast<double>(table.num_embeddings);
  const double gradient_lines = work.lookups * mean_row_lines(num_columns * 4);
  work.gradient_row_bytes = static_cast<double>(num_columns) * 4.0;
  for (std::size_t i = 0; i < kCacheBytes.size(); ++i) {
    const double cached_rows = kCacheBytes[i] / (work.row_lines * static_cast<double>(kLineBytes));
    work.uncached_lookups[i] = uncached_lookups_of(work, cached_rows);
    work.uncached_gradient_lines[i] =
        gradient_lines * std::max(1.0 - kCacheBytes[i] / work.output_bytes, 0.0);
  }
  return work;
}

const std::vector<std::string_view>& work_terms() {
  static const std::vector<std::string_view> terms{
      "pieces",
      "samples",
      "output_bytes",
      "lookups",
      "lookups_by_sort_passes",
      "vector_operations",
      "row_lines",
      "gradient_lines",
      "uncached_lines_32KiB",
      "uncached_lines_256KiB",
      "uncached_lines_2MiB",
      "uncached_lines_32MiB",
      "uncached_lines_256MiB",
      "uncached_gradient_lines_32KiB",
      "uncached_gradient_lines_256KiB",
      "uncached_gradient_lines_2MiB",
      "uncached_gradient_lines_32MiB",
      "uncached_gradient_lines_256MiB",
      "distinct_rows",
      "distinct_lines",
      "distinct_vector_operations",
      "hottest_row_vector_operations",
      "adagrad_distinct_rows",
      "adagrad_vector_operations",
      "fp16_vector_operations",
      "fp16_distinct_vector_operations",
  };
  return terms;
}

void write_work_terms(const PieceWork& work, const TableStatistics& table,
                      const OperatorSettings& settings, std::span<double> terms) {
  assert(terms.size() == work_terms().size());
  const bool adagrad = settings.optimizer == Optimizer::rowwise_adagrad;
  const bool fp16 = table.data_type == DataType::fp16;
  const double row_bits =
      std::log2(static_cast<double>(std::max<std::int64_t>(table.num_embeddings, 2)));
  const double operations = work.lookups * work.vector_operations;
  const double distinct_operations = work.distinct_rows * work.vector_operations;
  std::size_t next = 0;
  const auto add = [&](double value) { terms[next++] = value; };
  add(1.0);
  add(work.batch_size);
  add(work.output_bytes);
  add(work.lookups);
  add(work.lookups * row_bits / 8.0);
  add(operations);
  add(work.lookups * work.row_lines);
  add(work.lookups * work.gradient_row_bytes / static_cast<double>(kLineBytes));
  for (const double lookups : work.uncached_lookups) add(lookups * work.row_lines);
  for (const double lines : work.uncached_gradient_lines) add(lines);
  add(work.distinct_rows);
  add(work.distinct_rows * work.row_lines);
  add(distinct_operations);
  add(work.hottest_row_hits * work.vector_operations);
  add(adagrad ? work.distinct_rows : 0.0);
  add(adagrad ? distinct_operations : 0.0);
  add(fp16 ? operations : 0.0);
  add(fp16 ? distinct_operations : 0.0);
  assert(next == terms.size());
}

}  // namespace neuroshard
