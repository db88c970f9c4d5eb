// Slices of rows: their share of rows and lookups, and the whole table's mix of hot and cold rows.
#include "neuroshard/workload/reuse/row_slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "make_tables.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kSliceBatch = 8'192;

Table one_bin_table() {
  ReuseHistogram histogram{};
  histogram[6] = 1.0;
  return with_histogram(make_table(50'000, 10.0), histogram);
}

TEST(RowSlice, TheWholeTableIsItself) {
  const Table table = class_table(3.0);
  const Table slice = row_slice(table, kSliceBatch, 1.0);
  EXPECT_EQ(slice.num_embeddings, table.num_embeddings);
  EXPECT_EQ(slice.pooling_factor, table.pooling_factor);
  EXPECT_EQ(slice.index_distribution->access_classes.size(), 5u);
}

TEST(RowSlice, HasItsShareOfRowsAndLookups) {
  for (const Table& table : {make_table(100'000, 3.0), zipf_table(100'000, 3.0, 1.1),
                             class_table(3.0), one_bin_table()}) {
    for (const double share : {0.5, 0.25, 1.0 / 3.0, 0.1, 1.0 / 64.0}) {
      const Table slice = row_slice(table, kSliceBatch, share);
      validate(slice, "slice");
      EXPECT_NEAR(static_cast<double>(slice.num_embeddings),
                  share * static_cast<double>(table.num_embeddings), 1.0);
      EXPECT_DOUBLE_EQ(slice.pooling_factor, share * table.pooling_factor);
      EXPECT_EQ(slice.embedding_dim, table.embedding_dim);
      EXPECT_EQ(slice.data_type, table.data_type);
    }
  }
}

TEST(RowSlice, HasAtLeastOneRow) {
  const Table slice = row_slice(make_table(3, 2.0), kSliceBatch, 0.01);
  EXPECT_EQ(slice.num_embeddings, 1);
  EXPECT_EQ(rows_of_share(3, 0.01), 1);
  EXPECT_EQ(rows_of_share(10, 0.25), 3);  // rounded
  EXPECT_EQ(rows_of_share(kMaxEmbeddings, 1.0), kMaxEmbeddings);
}

/// Of uniform tables and classes of many rows exactly, of a power law by its histogram.
TEST(RowSlice, KeepsTheReuseHistogram) {
  Table classes = make_table(500'000, 5.0);
  classes.index_distribution =
      IndexDistribution{.zipf_exponent = 0.0, .access_classes = {{1'000, 0.6}, {400'000, 0.4}}};
  for (const Table& table :
       {make_table(100'000, 3.0), zipf_table(100'000, 3.0, 1.1), classes, one_bin_table()}) {
    const ReuseHistogram whole = reuse_histogram(table, kSliceBatch);
    const double distinct = reuse_statistics(table, kSliceBatch).distinct_rows;
    for (const double share : {0.5, 0.25, 0.1}) {
      const Table slice = row_slice(table, kSliceBatch, share);
      const ReuseHistogram part = reuse_histogram(slice, kSliceBatch);
      for (int bin = 0; bin < kReuseBins; ++bin) EXPECT_NEAR(part[bin], whole[bin], 1e-3) << bin;
      const double distinct_of_slice = reuse_statistics(slice, kSliceBatch).distinct_rows;
      // Where only a histogram is given, the distinct rows are known up to the width of its bins.
      const double tolerance = slice.reuse_histogram && !table.reuse_histogram ? 0.1 : 1e-3;
      EXPECT_NEAR(distinct_of_slice / (share * distinct), 1.0, tolerance);
    }
  }
}

/// The classes' shares of the lookups stay; a class of few rows may give some of its lookups to the
/// row that it shares with the next.
TEST(RowSlice, ClassesKeepTheirLookups) {
  const Table slice = row_slice(class_table(3.0), kSliceBatch, 0.5);
  const auto& classes = slice.index_distribution->access_classes;
  double total = 0.0;
  std::int64_t rows = 0;
  for (const AccessClass& access_class : classes) {
    total += access_class.access_share;
    rows += access_class.num_embeddings;
  }
  EXPECT_NEAR(total, 1.0, 1e-12);
  EXPECT_NEAR(static_cast<double>(rows), 0.5 * 421'011, 2.0);
  EXPECT_LE(rows, slice.num_embeddings);
  const auto largest = std::max_element(classes.begin(), classes.end(),
                                        [](const AccessClass& a, const AccessClass& b) {
                                          return a.num_embeddings < b.num_embeddings;
                                        });
  EXPECT_NEAR(largest->access_share, 0.2, 1e-5);
}

TEST(RowSlice, SlicesOfASliceAreSlices) {
  const Table once = row_slice(make_table(64'000, 8.0), kSliceBatch, 0.25);
  const Table twice =
      row_slice(row_slice(make_table(64'000, 8.0), kSliceBatch, 0.5), kSliceBatch, 0.5);
  EXPECT_EQ(once.num_embeddings, twice.num_embeddings);
  EXPECT_EQ(once.pooling_factor, twice.pooling_factor);
}

}  // namespace
}  // namespace neuroshard
