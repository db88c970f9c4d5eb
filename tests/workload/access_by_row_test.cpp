// Accesses by row: ranges against sums over single rows, measured curves, and cuts at equal shares.
#include "neuroshard/workload/reuse/access_by_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "make_tables.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/workload/reuse/poisson_reuse.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kBatch = 8'192;

Table by_frequency(Table table) {
  table.row_order = RowOrder::by_frequency;
  return table;
}

Table with_access(Table table, std::vector<RowAccessPoint> points) {
  table.row_access = std::move(points);
  return table;
}

/// Statistics of rows with these expected hits, one by one.
RangeAccess summed(const std::vector<double>& hits, std::int64_t first, std::int64_t count) {
  RangeAccess range;
  range.num_rows = count;
  for (std::int64_t row = first; row < first + count; ++row) {
    const PoissonReuse reuse = poisson_reuse(hits[row]);
    add_rows(range.reuse, 1.0, reuse);
    range.reuse.num_indices += hits[row];
    range.reuse.distinct_rows += reuse.hit;
    range.hottest_row_hits = std::max(range.hottest_row_hits, hits[row]);
  }
  range.share = range.reuse.num_indices / std::accumulate(hits.begin(), hits.end(), 0.0);
  return range;
}

void expect_near(const RangeAccess& found, const RangeAccess& expected, double tolerance) {
  EXPECT_EQ(found.num_rows, expected.num_rows);
  EXPECT_NEAR(found.share, expected.share, tolerance * expected.share);
  EXPECT_NEAR(found.hottest_row_hits, expected.hottest_row_hits,
              0.02 * expected.hottest_row_hits + 1e-12);
  const double distinct = expected.reuse.distinct_rows;
  EXPECT_NEAR(found.reuse.distinct_rows, distinct, tolerance * distinct);
  for (int bin = 0; bin < kReuseBins; ++bin) {
    EXPECT_NEAR(found.reuse.rows[bin], expected.reuse.rows[bin], 0.02 * distinct) << bin;
  }
}

TEST(AccessByRow, RangesOfAPowerLawAreSumsOverItsRows) {
  constexpr std::int64_t kRows = 20'000;
  for (const double exponent : {0.3, 0.8, 1.05, 1.2, 1.5, 3.0}) {
    const AccessByRow accesses(by_frequency(zipf_table(kRows, 10.0, exponent)), kBatch);
    std::vector<double> hits(kRows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      hits[row] = std::pow(static_cast<double>(row + 1), -exponent);
    }
    const double total = std::accumulate(hits.begin(), hits.end(), 0.0);
    for (double& each : hits) each *= 10.0 * kBatch / total;
    for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, kRows},
                                       {0, 1},
                                       {0, 5},
                                       {1, 40},
                                       {100, 400},
                                       {3'000, 7'000},
                                       {10'000, 10'000}}) {
      SCOPED_TRACE(testing::Message() << exponent << ": " << first << " + " << count);
      expect_near(accesses.range(first, count), summed(hits, first, count), 0.01);
    }
  }
}

TEST(AccessByRow, ClassesAreOrderedByRateAndUnusedRowsComeLast) {
  Table table = by_frequency(make_table(1'000, 4.0));
  table.index_distribution = IndexDistribution{0.0, {{500, 0.2}, {2, 0.5}, {100, 0.3}}};
  const AccessByRow accesses(table, kBatch);
  EXPECT_NEAR(accesses.range(0, 2).share, 0.5, 1e-12);
  EXPECT_NEAR(accesses.range(0, 102).share, 0.8, 1e-12);
  EXPECT_NEAR(accesses.range(52, 100).share, 0.15 + 0.02, 1e-12);
  EXPECT_NEAR(accesses.range(102, 500).share, 0.2, 1e-12);
  const RangeAccess unused = accesses.range(602, 398);
  EXPECT_EQ(unused.share, 0.0);
  EXPECT_EQ(unused.reuse.distinct_rows, 0.0);
  EXPECT_EQ(unused.hottest_row_hits, 0.0);
}

TEST(AccessByRow, TheHottestRowIsInOneRangeOnly) {
  Table table = by_frequency(make_table(100'000, 4.0));
  table.index_distribution = IndexDistribution{0.0, {{1, 0.1}, {99'999, 0.9}}};
  const AccessByRow accesses(table, kBatch);
  const double hits = 4.0 * kBatch;
  EXPECT_NEAR(accesses.range(0, 25'000).hottest_row_hits, 0.1 * hits, 1e-6 * hits);
  EXPECT_NEAR(accesses.range(25'000, 25'000).hottest_row_hits, 0.9 / 99'999 * hits, 1e-9 * hits);
}

TEST(AccessByRow, AHistogramAloneHasItsHotRowsFirst) {
  const Table table = zipf_table(200'000, 10.0, 1.2);
  const ReuseHistogram histogram = reuse_histogram(table, kBatch);
  const Table known = by_frequency(with_histogram(table, histogram));
  const AccessByRow accesses(known, kBatch);
  const AccessByRow exact(by_frequency(table), kBatch);
  double share = 0.0;
  double distinct = 0.0;
  for (std::int64_t first = 0; first < 200'000; first += 50'000) {
    const RangeAccess range = accesses.range(first, 50'000);
    share += range.share;
    distinct += range.reuse.distinct_rows;
  }
  EXPECT_NEAR(share, 1.0, 1e-9);
  const double whole = reuse_statistics(known, kBatch).distinct_rows;
  EXPECT_NEAR(distinct, whole, 0.05 * whole);
  for (const std::int64_t rows : {100, 1'000, 10'000}) {
    EXPECT_NEAR(accesses.range(0, rows).share, exact.range(0, rows).share, 0.05) << rows;
  }
}

TEST(AccessByRow, MeasuredAccessesOfATableOfWhichNoMoreIsKnown) {
  const Table table = with_access(make_table(1'000, 2.0), {{0.1, 0.7}, {0.5, 0.7}, {1.0, 1.0}});
  const AccessByRow accesses(table, kBatch);
  EXPECT_NEAR(accesses.range(0, 100).share, 0.7, 1e-12);
  EXPECT_NEAR(accesses.range(50, 100).share, 0.35, 1e-12);
  EXPECT_NEAR(accesses.range(100, 400).share, 0.0, 1e-12);
  EXPECT_NEAR(accesses.range(0, 750).share, 0.85, 1e-12);
  // Of the whole table too.
  const ReuseStatistics whole = reuse_statistics(table, kBatch);
  double distinct = 0.0;
  for (const std::int64_t first : {0, 250, 500, 750}) {
    distinct += accesses.range(first, 250).reuse.distinct_rows;
  }
  EXPECT_NEAR(distinct, whole.distinct_rows, 1e-6 * distinct);
  EXPECT_NEAR(hottest_row_share(table, kBatch), 0.007, 1e-12);
  // Uniform within a segment.
  EXPECT_NEAR(accesses.range(10, 20).hottest_row_hits, 2.0 * kBatch * 0.007, 1e-9);
}

/// The extremes: measured accesses of hashed ids, and of ids ordered by frequency.
TEST(AccessByRow, MeasuredAccessesDistributeTheRowsByTheirUse) {
  const Table table = zipf_table(100'000, 5.0, 1.1);
  const ReuseStatistics whole = reuse_statistics(table, kBatch);
  const AccessByRow even(with_access(table, {{0.3, 0.3}, {1.0, 1.0}}), kBatch);
  const RangeAccess third = even.range(0, 30'000);
  EXPECT_NEAR(third.share, 0.3, 1e-12);
  EXPECT_NEAR(third.reuse.distinct_rows, 0.3 * whole.distinct_rows, 3e-3 * whole.distinct_rows);

  const AccessByRow ordered(by_frequency(table), kBatch);
  std::vector<RowAccessPoint> points;
  std::int64_t rows = 1;
  for (; rows < 100'000; rows *= 3) {
    points.push_back({static_cast<double>(rows) / 100'000.0, ordered.range(0, rows).share});
  }
  points.push_back({1.0, 1.0});
  const AccessByRow measured(with_access(table, points), kBatch);
  for (std::int64_t first = 1; 3 * first < 100'000; first *= 3) {
    const RangeAccess found = measured.range(first, 2 * first);
    const RangeAccess expected = ordered.range(first, 2 * first);
    EXPECT_NEAR(found.share, expected.share, 1e-9);
    EXPECT_NEAR(found.reuse.distinct_rows, expected.reuse.distinct_rows,
                0.03 * expected.reuse.distinct_rows);
  }
  EXPECT_NEAR(measured.range(0, 1).hottest_row_hits, ordered.range(0, 1).hottest_row_hits,
              1e-3 * ordered.range(0, 1).hottest_row_hits);
}

/// A curve with more accesses in few rows than the distribution can have: the curve is right.
TEST(AccessByRow, TheMeasuredAccessesAreRightWhateverTheDistribution) {
  const Table table = with_access(zipf_table(10'000, 5.0, 0.1), {{0.01, 0.9}, {1.0, 1.0}});
  const AccessByRow accesses(table, kBatch);
  EXPECT_NEAR(accesses.range(0, 100).share, 0.9, 1e-9);
  EXPECT_NEAR(accesses.range(100, 9'900).share, 0.1, 1e-9);
}

Table arbitrary_ordered_table() {
  const auto rows = *rc::gen::inRange<std::int64_t>(8, 1'000'000);
  Table table = make_table(rows, *rc::gen::element(0.01, 1.0, 30.0));
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      table = zipf_table(rows, table.pooling_factor, *rc::gen::element(0.2, 1.0, 1.05, 1.5, 4.0));
      break;
    case 1: {
      const auto hot = *rc::gen::inRange<std::int64_t>(1, rows);
      const double share = *rc::gen::element(0.0, 0.3, 0.99);
      table.index_distribution = IndexDistribution{0.0, {{rows - hot, 1.0 - share}, {hot, share}}};
      break;
    }
    case 2:
      table = with_histogram(table,
                             reuse_histogram(zipf_table(rows, table.pooling_factor, 1.1), kBatch));
      break;
    default:
      break;
  }
  const bool is_uniform = !table.index_distribution && !table.reuse_histogram;
  if (!is_uniform && *rc::gen::arbitrary<bool>()) return by_frequency(table);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<double> row_shares{1.0};
  std::vector<double> access_shares{1.0};
  const int most = *rc::gen::weightedElement<int>({{9, 12}, {1, 300}});
  for (int i = *rc::gen::inRange(0, most); i > 0; --i) {
    row_shares.push_back(std::pow(random.uniform(), *rc::gen::element(1.0, 6.0)));
    access_shares.push_back(random.uniform());
  }
  std::sort(row_shares.begin(), row_shares.end());
  std::sort(access_shares.begin(), access_shares.end());
  double before = 0.0;
  for (std::size_t i = 0; i < row_shares.size(); ++i) {
    if (row_shares[i] - before < 0x1p-43) continue;  // which no table may have
    table.row_access.push_back({row_shares[i], access_shares[i]});
    before = row_shares[i];
  }
  return table;
}

RC_GTEST_PROP(AccessByRowProperty, RangesAddUp, ()) {
  const Table table = arbitrary_ordered_table();
  validate(table, "table");
  const AccessByRow accesses(table, kBatch);
  const auto parts = *rc::gen::inRange<std::int64_t>(1, 8);
  RangeAccess sum;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = table.num_embeddings * part / parts;
    const std::int64_t end = table.num_embeddings * (part + 1) / parts;
    const RangeAccess range = accesses.range(first, end - first);
    double rows = 0.0;
    for (const RateClass& rate_class : accesses.rows(first, end - first)) rows += rate_class.rows;
    RC_ASSERT(std::abs(rows - static_cast<double>(end - first)) <=
              1e-6 * static_cast<double>(end - first) + 1e-6);
    RC_ASSERT(range.reuse.distinct_rows <= static_cast<double>(end - first) * (1.0 + 1e-9));
    RC_ASSERT(range.reuse.distinct_rows <= range.reuse.num_indices * (1.0 + 1e-9));
    RC_ASSERT(range.hottest_row_hits <= range.reuse.num_indices * (1.0 + 1e-9));
    sum.num_rows += range.num_rows;
    sum.share += range.share;
    sum.reuse.distinct_rows += range.reuse.distinct_rows;
    sum.hottest_row_hits = std::max(sum.hottest_row_hits, range.hottest_row_hits);
  }
  RC_ASSERT(sum.num_rows == table.num_embeddings);
  RC_ASSERT(std::abs(sum.share - 1.0) < 1e-9);
  const RangeAccess whole = accesses.range(0, table.num_embeddings);
  RC_ASSERT(std::abs(sum.reuse.distinct_rows - whole.reuse.distinct_rows) <=
            1e-6 * whole.reuse.distinct_rows + 1e-9);
  RC_ASSERT(sum.hottest_row_hits <= whole.hottest_row_hits * (1.0 + 1e-9));
}

/// A row that the distribution has once may be spread over all segments of a measured curve: then
/// it is a part of each.
RC_GTEST_PROP(AccessByRowProperty, TheHottestRowIsPutTogetherFromTheHottestParts, ()) {
  const Table table = arbitrary_ordered_table();
  const AccessByRow accesses(table, kBatch);
  const auto first = *rc::gen::inRange<std::int64_t>(0, table.num_embeddings);
  const auto count = *rc::gen::inRange<std::int64_t>(1, table.num_embeddings - first + 1);
  double missing = 1.0;
  double hits = 0.0;
  for (const RateClass& rate_class : accesses.rows(first, count)) {
    const double taken = std::min(rate_class.rows, missing);
    hits += taken * rate_class.rate;
    missing -= taken;
  }
  RC_ASSERT(std::abs(accesses.range(first, count).hottest_row_hits - hits) <= 1e-9 * hits);
}

/// Whether each of the first `num_equal` slices ends where one row more or less would be no nearer
/// to the mean of what is left of them, as far as slices may have so many rows.
bool are_as_equal_as_rows_permit(const AccessByRow& accesses, const std::vector<std::int64_t>& ends,
                                 int num_equal, std::int64_t min_rows, std::int64_t max_rows) {
  const double total = accesses.range(0, ends[num_equal]).share;
  double before = 0.0;
  for (int slice = 0; slice + 1 < num_equal; ++slice) {
    const std::int64_t first = ends[slice];
    const std::int64_t count = ends[slice + 1] - first;
    const double share = accesses.range(first, count).share;
    const double mean = (total - before) / (num_equal - slice);
    const auto after = static_cast<std::int64_t>(num_equal - slice - 1);
    const std::int64_t most = std::min(max_rows, ends[num_equal] - first - min_rows * after);
    for (const std::int64_t other : {count - 1, count + 1}) {
      if (other < min_rows || other > most) continue;
      const double others = accesses.range(first, other).share;
      if (std::abs(share - mean) > std::abs(others - mean) + 1e-9) return false;
    }
    before += share;
  }
  return true;
}

RC_GTEST_PROP(AccessByRowProperty, CutsAreAtSharesAsEqualAsRowsPermit, ()) {
  const Table table = arbitrary_ordered_table();
  const AccessByRow accesses(table, kBatch);
  const int slices = *rc::gen::inRange(1, 9);
  const auto min_rows = *rc::gen::inRange<std::int64_t>(
      1, std::min<std::int64_t>(table.num_embeddings / slices, 500) + 1);
  const std::int64_t equal_rows = (table.num_embeddings + slices - 1) / slices;
  const auto max_rows = *rc::gen::inRange<std::int64_t>(1, 3 * equal_rows);
  const std::int64_t longest = std::clamp(max_rows, equal_rows, table.num_embeddings);
  const std::vector<std::int64_t> ends = accesses.hits().equal_ends(slices, min_rows, max_rows);
  RC_ASSERT(ends.size() == static_cast<std::size_t>(slices) + 1);
  RC_ASSERT(ends.front() == 0 && ends.back() == table.num_embeddings);
  for (int slice = 0; slice < slices; ++slice) {
    const std::int64_t count = ends[slice + 1] - ends[slice];
    RC_ASSERT(count >= min_rows && count <= longest);
  }
  // All slices, or those before some last ones that are full.
  bool found = false;
  for (int num_equal = slices; num_equal >= 1 && !found; --num_equal) {
    found = are_as_equal_as_rows_permit(accesses, ends, num_equal, min_rows, longest);
    if (ends[num_equal] - ends[num_equal - 1] != longest) break;
  }
  RC_ASSERT(found);
}

TEST(AccessByRow, ColdRowsThatAreTooManyForOneSliceFillTheLastOnes) {
  Table table = by_frequency(make_table(1'000'000, 4.0));
  table.index_distribution = IndexDistribution{0.0, {{900, 0.9}, {999'100, 0.1}}};
  const AccessByRow accesses(table, kBatch);
  EXPECT_THAT(accesses.hits().equal_ends(4, 1, 400'000),
              testing::ElementsAre(0, testing::AllOf(testing::Gt(450), testing::Lt(500)), 200'000,
                                   600'000, 1'000'000));
  // Room for no more than all of them: equal slices.
  EXPECT_THAT(accesses.hits().equal_ends(4, 1, 10),
              testing::ElementsAre(0, 250'000, 500'000, 750'000, 1'000'000));
}

TEST(AccessByRow, ADominantRowHasASliceOfItsOwn) {
  Table table = by_frequency(make_table(1'000'000, 4.0));
  table.index_distribution = IndexDistribution{0.0, {{1, 0.4}, {999'999, 0.6}}};
  const std::vector<std::int64_t> ends =
      AccessByRow(table, kBatch).hits().equal_ends(4, 1, table.num_embeddings);
  EXPECT_EQ(ends[1], 1);
  for (const std::size_t slice : {1, 2, 3}) {
    EXPECT_NEAR(static_cast<double>(ends[slice + 1] - ends[slice]), 333'333.0, 2.0);
  }
}

TEST(AccessByRow, ManyClassesAreAsFew) {
  // A class for every ten rows, rates falling by a millionth: with measured accesses, whose
  // segments have a share of each class, and with few classes of the same rows.
  constexpr int kClasses = 20'000;
  Table many = make_table(10 * kClasses, 4.0);
  many.index_distribution = IndexDistribution{};
  double weights = 0.0;
  for (int i = 0; i < kClasses; ++i) weights += 2.0 - 1e-5 * i;
  for (int i = 0; i < kClasses; ++i) {
    many.index_distribution->access_classes.push_back({10, (2.0 - 1e-5 * i) / weights});
  }
  for (int i = 1; i <= 1'000; ++i) {
    const double share = 0.001 * i;
    many.row_access.push_back({share, std::min(1.0, 1.1 * share - 0.1 * share * share)});
  }
  const AccessByRow accesses(many, 4'096);
  std::size_t most_classes = 0;
  for (const AccessByRow::Segment& segment : accesses.segments()) {
    most_classes = std::max(most_classes, segment.rows.size());
  }
  EXPECT_LE(most_classes, 10u);
  const RangeAccess half = accesses.range(0, 5 * kClasses);
  EXPECT_NEAR(half.share, 1.1 * 0.5 - 0.1 * 0.25, 1e-9);
  EXPECT_NEAR(half.reuse.num_indices, half.share * 4.0 * 4'096, 1e-6 * half.reuse.num_indices);
}

}  // namespace
}  // namespace neuroshard
