// Closed forms against drawn batches, for every kind of distribution.
#include "neuroshard/workload/reuse/index_distribution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "batch_counts.h"
#include "make_tables.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard {
namespace {

/// Five standard deviations of a count, and the error of the Poisson assumption.
double tolerance(double expected) { return 5.0 * std::sqrt(expected + 1.0); }

void expect_drawn_as_computed(const Table& table, std::int64_t batch_size, std::uint64_t seed) {
  const std::string place = fmt::format("{} rows, pooling {}, batch {}", table.num_embeddings,
                                        table.pooling_factor, batch_size);
  Random random(seed);
  IndexBatch batch;
  IndexSampler(table, batch_size).draw(batch_size, random, batch);
  const ReuseStatistics drawn = count_reuse(batch);
  const ReuseStatistics computed = reuse_statistics(table, batch_size);
  EXPECT_NEAR(drawn.num_indices, computed.num_indices, tolerance(computed.num_indices)) << place;
  EXPECT_NEAR(drawn.distinct_rows, computed.distinct_rows, tolerance(computed.distinct_rows))
      << place;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    EXPECT_NEAR(drawn.rows[bin], computed.rows[bin], tolerance(computed.rows[bin]))
        << place << ", bin " << bin;
  }
}

TEST(IndexDistribution, UniformAsDrawn) {
  for (const std::int64_t batch_size : {512, 4'096, 65'536}) {
    for (const std::int64_t rows : {1, 3, 36, 1'543, 100'000, 40'000'000}) {
      for (const double pooling : {0.4, 1.0, 7.5}) {
        expect_drawn_as_computed(make_table(rows, pooling), batch_size, 11);
      }
    }
  }
}

TEST(IndexDistribution, PowerLawAsDrawn) {
  for (const std::int64_t batch_size : {512, 16'384, 65'536}) {
    for (const std::int64_t rows :
         std::initializer_list<std::int64_t>{10, 1'000, 100'000, 4'000'000, 5'000'000'000}) {
      for (const double exponent : {0.3, 1.0, 1.1, 2.0}) {
        expect_drawn_as_computed(zipf_table(rows, 9.5, exponent), batch_size, 12);
      }
    }
  }
}

TEST(IndexDistribution, AccessClassesAsDrawn) {
  for (const std::int64_t batch_size : {512, 16'384, 65'536}) {
    expect_drawn_as_computed(class_table(1.0), batch_size, 13);
    expect_drawn_as_computed(class_table(12.3), batch_size, 14);
  }
}

/// Every rank summed one by one.
ReuseStatistics zipf_by_summation(std::int64_t rows, double exponent, double num_indices) {
  Table table = make_table(rows, num_indices);
  IndexDistribution distribution;
  double weight = 0.0;
  for (std::int64_t rank = rows; rank >= 1; --rank) {
    weight += std::pow(static_cast<double>(rank), -exponent);
  }
  for (std::int64_t rank = 1; rank <= rows; ++rank) {
    distribution.access_classes.push_back(
        {1, std::pow(static_cast<double>(rank), -exponent) / weight});
  }
  table.index_distribution = distribution;
  return reuse_statistics(table, 1);
}

TEST(IndexDistribution, PowerLawQuadratureAgreesWithSummation) {
  for (const double exponent : {0.01, 0.5, 1.0, 1.1, 3.0, 10.0}) {
    for (const std::int64_t rows : {257, 300, 200'000}) {
      for (const double num_indices : {100.0, 65'536.0, 1e8, 1e12}) {
        const ReuseStatistics expected = zipf_by_summation(rows, exponent, num_indices);
        const ReuseStatistics actual = reuse_statistics(zipf_table(rows, num_indices, exponent), 1);
        EXPECT_NEAR(actual.distinct_rows / expected.distinct_rows, 1.0, 1e-4);
        for (int bin = 0; bin < kReuseBins; ++bin) {
          EXPECT_NEAR(actual.rows[bin] / expected.distinct_rows,
                      expected.rows[bin] / expected.distinct_rows, 1e-4)
              << fmt::format("exponent {}, {} rows, {} lookups, bin {}", exponent, rows,
                             num_indices, bin);
          EXPECT_NEAR(actual.indices[bin] / num_indices, expected.indices[bin] / num_indices, 1e-4)
              << fmt::format("exponent {}, {} rows, {} lookups, bin {}", exponent, rows,
                             num_indices, bin);
        }
      }
    }
  }
}

TEST(HottestRowShare, OfUniformUseIsARowsShare) {
  EXPECT_EQ(hottest_row_share(make_table(400, 3.0), 4'096), 1.0 / 400.0);
  EXPECT_EQ(hottest_row_share(make_table(1, 3.0), 4'096), 1.0);
}

TEST(HottestRowShare, OfAPowerLawIsTheFirstRanks) {
  double weight = 0.0;
  for (int rank = 1'000; rank >= 1; --rank) weight += std::pow(rank, -1.1);
  EXPECT_NEAR(hottest_row_share(zipf_table(1'000, 3.0, 1.1), 4'096), 1.0 / weight, 1e-8);
  EXPECT_NEAR(hottest_row_share(zipf_table(100, 3.0, 1.0), 4'096), 1.0 / 5.187377517639621, 1e-12);
  EXPECT_NEAR(hottest_row_share(zipf_table(kMaxEmbeddings, 3.0, 10.0), 1), 1.0 / 1.000994575, 1e-9);
}

TEST(HottestRowShare, OfClassesIsTheHottestClasss) {
  EXPECT_DOUBLE_EQ(hottest_row_share(class_table(3.0), 4'096), 0.2);
  Table table = class_table(3.0);
  table.index_distribution->access_classes = {{1'000, 0.1}, {5, 0.4}, {2, 0.1}, {100, 0.4}};
  EXPECT_DOUBLE_EQ(hottest_row_share(table, 4'096), 0.08);
  // Shares that add up to 1 but for the rounding that input files are allowed.
  for (AccessClass& access_class : table.index_distribution->access_classes) {
    access_class.access_share *= 1.0005;
  }
  EXPECT_DOUBLE_EQ(hottest_row_share(table, 4'096), 0.08);
}

TEST(HottestRowShare, OfAHistogramIsItsLastBins) {
  ReuseHistogram histogram{};
  histogram[0] = 0.9;
  histogram[1] = 0.1;  // hit twice
  const Table table = with_histogram(make_table(1'000'000, 1.0), histogram);
  EXPECT_NEAR(hottest_row_share(table, 1'100), 2.0 / 1'100.0, 1e-9);
  histogram = {};
  histogram[16] = 1.0;  // all lookups hit fewer rows than one
  EXPECT_EQ(hottest_row_share(with_histogram(make_table(10, 1.0), histogram), 64), 1.0);
}

/// As of a distribution, whose histogram has a little in every bin.
TEST(HottestRowShare, OfAHistogramIsNoThousandthOfARow) {
  ReuseHistogram histogram{};
  histogram[0] = 1.0 - 1e-9;
  histogram[12] = 1e-9;
  const Table table = with_histogram(make_table(1'000'000, 1.0), histogram);
  EXPECT_NEAR(hottest_row_share(table, 1'000), 1.0 / 1'000.0, 1e-5);
}

TEST(HottestRowShare, OfAHistogramNeverHasFewerHitsWithMoreLookups) {
  ReuseHistogram histogram{};
  histogram[0] = 0.989;
  histogram[1] = 0.01;
  histogram[2] = 0.001;
  const Table table = with_histogram(make_table(1'000'000, 1.0), histogram);
  double before = 0.0;
  for (std::int64_t batch_size = 1; batch_size < 10'000; ++batch_size) {
    const double hits = static_cast<double>(batch_size) * hottest_row_share(table, batch_size);
    EXPECT_GE(hits, before * (1.0 - 1e-12)) << batch_size;
    before = hits;
  }
  EXPECT_NEAR(before, 3.36, 0.01);
}

TEST(HottestRowShare, IsAShareForEveryTable) {
  for (const double pooling : {1e-6, 0.3, 20.0, kMaxPoolingFactor}) {
    for (const std::int64_t batch_size : {std::int64_t{1}, std::int64_t{4'096}, kMaxBatchSize}) {
      for (int bin = 0; bin < kReuseBins; ++bin) {
        ReuseHistogram histogram{};
        histogram[bin] = 1.0;
        for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{1'000}, kMaxEmbeddings}) {
          const double share =
              hottest_row_share(with_histogram(make_table(rows, pooling), histogram), batch_size);
          EXPECT_TRUE(share > 0.0 && share <= 1.0) << share;
        }
      }
    }
  }
}

TEST(IndexDistribution, LookupsAddUpForAnyNumberOfRows) {
  for (const double exponent : {0.0, 1e-9, 0.7, 1.0, 1.1, 10.0}) {
    for (std::int64_t rows = 1; rows <= kMaxEmbeddings; rows *= 4) {
      const ReuseStatistics statistics = reuse_statistics(zipf_table(rows, 20.0, exponent), 65'536);
      const double indices =
          std::accumulate(statistics.indices.begin(), statistics.indices.end(), 0.0);
      const double distinct = std::accumulate(statistics.rows.begin(), statistics.rows.end(), 0.0);
      EXPECT_NEAR(indices / statistics.num_indices, 1.0, 1e-5) << exponent << " " << rows;
      EXPECT_NEAR(distinct / statistics.distinct_rows, 1.0, 1e-9) << exponent << " " << rows;
      EXPECT_LE(distinct, static_cast<double>(rows) * (1.0 + 1e-5));
    }
  }
}

}  // namespace
}  // namespace neuroshard
