// Batches of tables with a row order: what is drawn hits every slice as its statistics say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "batch_counts.h"
#include "make_tables.h"
#include "neuroshard/workload/reuse/access_by_row.h"
#include "neuroshard/workload/reuse/row_slice.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kDrawnBatch = 16'384;

IndexBatch drawn(const Table& table, std::uint64_t seed) {
  Random random(seed);
  IndexBatch batch;
  IndexSampler(table, kDrawnBatch).draw(kDrawnBatch, random, batch);
  return batch;
}

/// The lookups of a batch in a range of rows.
IndexBatch within(const IndexBatch& batch, std::int64_t first, std::int64_t end) {
  IndexBatch part;
  for (const std::int64_t row : batch.indices) {
    if (row >= first && row < end) part.indices.push_back(row);
  }
  return part;
}

double hottest_hits(const IndexBatch& batch) {
  std::unordered_map<std::int64_t, std::int64_t> hits;
  std::int64_t most = 0;
  for (const std::int64_t row : batch.indices) most = std::max(most, ++hits[row]);
  return static_cast<double>(most);
}

void expect_like(const IndexBatch& drawn, const RangeAccess& expected) {
  const ReuseStatistics found = count_reuse(drawn);
  const double lookups = expected.reuse.num_indices;
  EXPECT_NEAR(found.num_indices, lookups, 0.05 * lookups);
  const double distinct = expected.reuse.distinct_rows;
  EXPECT_NEAR(found.distinct_rows, distinct, 0.05 * distinct + 2.0);
  for (int bin = 0; bin < kReuseBins; ++bin) {
    const double rows = expected.reuse.rows[bin];
    EXPECT_NEAR(found.rows[bin], rows, 0.02 * distinct + 4.0 * std::sqrt(rows) + 2.0) << bin;
  }
}

/// The acceptance: Zipf exponents 1.05 to 1.5, ordered by frequency, 2 to 8 slices.
TEST(DrawnSlices, HaveTheLoadThatTheStatisticsSay) {
  for (int step = 0; step <= 9; ++step) {
    Table table = zipf_table(1'000'000, 20.0, 1.05 + 0.05 * step);
    table.row_order = RowOrder::by_frequency;
    const AccessByRow accesses(table, kDrawnBatch);
    const IndexBatch batch = drawn(table, 7 + step);
    for (int slices = 2; slices <= 8; ++slices) {
      const std::vector<std::int64_t> ends =
          accesses.hits().equal_ends(slices, 1, table.num_embeddings);
      for (int slice = 0; slice < slices; ++slice) {
        SCOPED_TRACE(testing::Message() << table.index_distribution->zipf_exponent << ", " << slice
                                        << " of " << slices);
        const RangeAccess expected = accesses.range(ends[slice], ends[slice + 1] - ends[slice]);
        const IndexBatch part = within(batch, ends[slice], ends[slice + 1]);
        expect_like(part, expected);
        // Of some 100 hits or more, the maximum over rows is that of the hottest.
        if (slice == 0) {
          EXPECT_NEAR(hottest_hits(part), expected.hottest_row_hits,
                      0.02 * expected.hottest_row_hits);
        }
      }
    }
  }
}

TEST(DrawnSlices, OfOtherRangesToo) {
  Table table = zipf_table(300'000, 20.0, 1.2);
  table.row_order = RowOrder::by_frequency;
  const AccessByRow accesses(table, kDrawnBatch);
  const IndexBatch batch = drawn(table, 3);
  for (std::int64_t first = 1; first < 100'000; first *= 4) {
    SCOPED_TRACE(first);
    expect_like(within(batch, first, 4 * first), accesses.range(first, 3 * first));
  }
}

TEST(DrawnSlices, OfClassesAndOfAHistogramAlone) {
  Table classes = class_table(20.0);
  std::reverse(classes.index_distribution->access_classes.begin(),
               classes.index_distribution->access_classes.end());
  const Table zipf = zipf_table(200'000, 20.0, 1.2);
  for (Table table : {classes, with_histogram(zipf, reuse_histogram(zipf, kDrawnBatch))}) {
    table.row_order = RowOrder::by_frequency;
    const AccessByRow accesses(table, kDrawnBatch);
    const IndexBatch batch = drawn(table, 5);
    const std::vector<std::int64_t> ends = accesses.hits().equal_ends(4, 1, table.num_embeddings);
    for (int slice = 0; slice < 4; ++slice) {
      SCOPED_TRACE(slice);
      expect_like(within(batch, ends[slice], ends[slice + 1]),
                  accesses.range(ends[slice], ends[slice + 1] - ends[slice]));
    }
  }
}

const std::vector<RowAccessPoint> kMeasured{
    {1e-5, 0.1}, {0.1, 0.2}, {0.2, 0.6}, {0.7, 0.6}, {1.0, 1.0}};

TEST(DrawnSlices, OfMeasuredAccesses) {
  for (Table table : {make_table(200'000, 20.0), zipf_table(200'000, 20.0, 0.6)}) {
    table.row_access = kMeasured;
    const AccessByRow accesses(table, kDrawnBatch);
    const IndexBatch batch = drawn(table, 11);
    const auto expect_load = [&](std::int64_t first, std::int64_t end) {
      const double lookups = accesses.range(first, end - first).reuse.num_indices;
      EXPECT_NEAR(static_cast<double>(within(batch, first, end).indices.size()), lookups,
                  0.05 * lookups);
    };
    for (const int slices : {2, 3, 8}) {
      const std::vector<std::int64_t> ends =
          accesses.hits().equal_ends(slices, 1, table.num_embeddings);
      for (int slice = 0; slice < slices; ++slice) {
        SCOPED_TRACE(testing::Message() << slice << " of " << slices);
        expect_load(ends[slice], ends[slice + 1]);
      }
    }
    // Half of a segment is a fair sample of it, its hot and cold rows mixed.
    expect_load(table.num_embeddings / 8, table.num_embeddings * 7 / 40);
  }
}

/// Where within a segment a hot row is, the statistics do not know.
TEST(DrawnSlices, OfMeasuredAccessesWithHotRowsBySegment) {
  for (Table table : {zipf_table(200'000, 20.0, 1.2), class_table(20.0)}) {
    table.row_access = kMeasured;
    const AccessByRow accesses(table, kDrawnBatch);
    const IndexBatch batch = drawn(table, 17);
    double before = 0.0;
    std::int64_t first = 0;
    for (const RowAccessPoint& point : kMeasured) {
      SCOPED_TRACE(point.row_share);
      const auto end = static_cast<std::int64_t>(
          std::llround(point.row_share * static_cast<double>(table.num_embeddings)));
      const double lookups = (point.access_share - before) * 20.0 * kDrawnBatch;
      EXPECT_NEAR(static_cast<double>(within(batch, first, end).indices.size()), lookups,
                  0.03 * lookups);
      before = point.access_share;
      first = end;
    }
  }
}

/// What a backend is given for a slice is hit as the slice of the whole table is.
TEST(DrawnSlices, AsTablesOfTheirOwn) {
  Table ordered = zipf_table(1'000'000, 20.0, 1.2);
  ordered.row_order = RowOrder::by_frequency;
  Table measured = zipf_table(1'000'000, 20.0, 1.2);
  measured.row_access = {{0.001, 0.5}, {0.5, 0.6}, {1.0, 1.0}};
  for (const Table& table : {ordered, measured}) {
    const AccessByRow accesses(table, kDrawnBatch);
    const std::vector<std::int64_t> ends = accesses.hits().equal_ends(4, 1, table.num_embeddings);
    for (int slice = 0; slice < 4; ++slice) {
      SCOPED_TRACE(slice);
      const std::int64_t rows = ends[slice + 1] - ends[slice];
      const Table own = row_slice(table, accesses, ends[slice], rows);
      validate(own, "slice");
      EXPECT_EQ(own.num_embeddings, rows);
      expect_like(drawn(own, 9), accesses.range(ends[slice], rows));
    }
  }
}

TEST(DrawnSlices, ThatAreNeverUsedHaveHardlyAnyLookups) {
  Table table = make_table(1'000, 4.0);
  table.row_access = {{0.5, 1.0}, {1.0, 1.0}};
  const Table slice = row_slice(table, AccessByRow(table, kDrawnBatch), 500, 500);
  validate(slice, "slice");
  EXPECT_LT(slice.pooling_factor, 1e-5);
  EXPECT_LT(drawn(slice, 1).indices.size(), 10u);
}

/// Rows that are fewer than the segments, or boundaries within a row.
TEST(DrawnSlices, OfTinyTables) {
  for (const std::int64_t rows : {1, 2, 3, 7}) {
    Table table = make_table(rows, 10.0);
    table.row_access = {{0.01, 0.2}, {0.35, 0.5}, {0.5, 0.6}, {0.99, 0.7}, {1.0, 1.0}};
    const IndexBatch batch = drawn(table, 13);
    for (const std::int64_t row : batch.indices) {
      ASSERT_GE(row, 0);
      ASSERT_LT(row, rows);
    }
  }
}

}  // namespace
}  // namespace neuroshard
