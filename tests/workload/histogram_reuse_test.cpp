// Tables of which only a reuse histogram is known.
#include "neuroshard/workload/reuse/histogram_reuse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "batch_counts.h"
#include "make_tables.h"
#include "neuroshard/workload/generate/generated_workloads.h"
#include "neuroshard/workload/published_workloads.h"

namespace neuroshard {
namespace {

double sum(const ReuseHistogram& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double largest_difference(const ReuseHistogram& a, const ReuseHistogram& b) {
  double largest = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    largest = std::max(largest, std::abs(a[bin] - b[bin]));
  }
  return largest;
}

/// The histogram that tables drawn like this one really have, by the closed form.
ReuseHistogram round_trip(const Table& table, std::int64_t batch_size) {
  Table resolved = table;
  resolved.reuse_histogram.reset();
  resolved.index_distribution = resolved_distribution(table, batch_size);
  validate(resolved, table.name);
  return reuse_histogram(resolved, batch_size);
}

TEST(HistogramReuse, MeanCountsAreThoseOfThePublishedLocality) {
  EXPECT_DOUBLE_EQ(mean_count_of_bin(0), 1.0);
  EXPECT_DOUBLE_EQ(mean_count_of_bin(1), 2.0);
  for (const LocalityFacts& facts : published_locality()) {
    for (int bin = 2; bin <= 5; ++bin) {  // beyond, the published digits are too few
      const double published = facts.share_of_indices[bin] * facts.num_indices /
                               (facts.share_of_rows[bin] * facts.num_distinct_rows);
      EXPECT_NEAR(mean_count_of_bin(bin) / published, 1.0, 0.03) << facts.name << " bin " << bin;
    }
  }
}

TEST(HistogramReuse, StatisticsAnswerWithTheHistogram) {
  ReuseHistogram histogram{};
  histogram[0] = 0.5;
  histogram[3] = 0.3;
  histogram[7] = 0.2;
  const Table table = with_histogram(make_table(1'000'000, 10.0), histogram);
  EXPECT_EQ(reuse_histogram(table, 4'096), histogram);
  const ReuseStatistics statistics = reuse_statistics(table, 4'096);
  EXPECT_NEAR(sum(statistics.indices) / 40'960.0, 1.0, 1e-12);
  EXPECT_NEAR(sum(statistics.rows) / statistics.distinct_rows, 1.0, 1e-12);
  EXPECT_NEAR(statistics.rows[3] / statistics.distinct_rows, 0.3, 1e-12);
}

TEST(HistogramReuse, DistinctRowsNeverExceedTheTable) {
  for (const std::int64_t rows : {1, 2, 3, 7, 100}) {
    for (const double pooling : {1.0, 2.0, 100.0}) {
      const Table table = make_table(rows, pooling);
      const Table known_by_histogram = with_histogram(table, reuse_histogram(table, 65'536));
      const ReuseStatistics statistics = reuse_statistics(known_by_histogram, 65'536);
      EXPECT_LE(statistics.distinct_rows, static_cast<double>(rows) * (1.0 + 1e-12));
      EXPECT_GE(statistics.distinct_rows, 0.6 * static_cast<double>(rows));
      EXPECT_NEAR(sum(statistics.indices) / statistics.num_indices, 1.0, 1e-12);
    }
  }
}

TEST(HistogramReuse, TheLastBinHasOnlyWhatNoOtherHasRoomFor) {
  // 100 rows of 31,000 hits each, a few of which reach the last bin's 32,769 by chance, hardly
  // ever.
  const Table uniform = make_table(100, 3.1e6 / 65'536);
  const ReuseHistogram histogram = reuse_histogram(uniform, 65'536);
  ASSERT_GT(histogram[kReuseBins - 1], 0.0);
  ASSERT_LT(histogram[kReuseBins - 1], 1e-6);
  const ReuseStatistics all = reuse_statistics(with_histogram(uniform, histogram), 65'536);
  EXPECT_NEAR(hottest_row_hits(all) / all.num_indices, 0.01, 0.001);
  EXPECT_LT(all.indices[kReuseBins - 1], 1e-3 * all.num_indices);
  // Nine rows of 16,385 to 32,768 hits, and one of more.
  ReuseHistogram high{};
  high[kReuseBins - 2] = 0.9;
  high[kReuseBins - 1] = 0.1;
  const Table ten = with_histogram(make_table(10, 5.0), high);
  const ReuseStatistics of_ten = reuse_statistics(ten, 65'536);
  EXPECT_LT(hottest_row_hits(of_ten) / of_ten.num_indices, 0.25);
  EXPECT_NEAR(of_ten.distinct_rows, 10.0, 1e-9);
  // What no other bin has room for is in the last.
  const ReuseStatistics of_many =
      reuse_statistics(with_histogram(make_table(10, 50.0), high), 65'536);
  EXPECT_NEAR(sum(of_many.indices) / of_many.num_indices, 1.0, 1e-12);
  EXPECT_NEAR(of_many.indices[kReuseBins - 1], of_many.num_indices - 9.0 * 32'768.0, 1.0);
}

TEST(HistogramReuse, InversionReproducesUniformAndPowerLawHistograms) {
  for (const std::int64_t batch_size : {2'048, 65'536}) {
    for (const std::int64_t rows : {100, 39'060, 3'067'956, 40'000'000}) {
      for (const double pooling : {1.0, 3.0, 27.0}) {
        for (const double exponent : {0.0, 0.5, 1.1, 1.5}) {
          const Table table = zipf_table(rows, pooling, exponent);
          const ReuseHistogram histogram = reuse_histogram(table, batch_size);
          const ReuseHistogram back = round_trip(with_histogram(table, histogram), batch_size);
          EXPECT_LT(largest_difference(histogram, back), 0.03) << fmt::format(
              "{} rows, pooling {}, exponent {}, batch {}", rows, pooling, exponent, batch_size);
        }
      }
    }
  }
}

TEST(HistogramReuse, InversionReproducesGeneratedTables) {
  const Workload workload = dlrm_2021(5);
  int compared = 0;
  for (std::size_t t = 0; t < workload.tables.size(); t += 5) {
    const Table& table = workload.tables[t];
    const ReuseStatistics statistics = reuse_statistics(table, workload.batch_size);
    if (statistics.distinct_rows < 100.0) continue;  // a row alone is more than 0.01
    ++compared;
    const ReuseHistogram histogram = reuse_histogram(table, workload.batch_size);
    const Table known_by_histogram = with_histogram(table, histogram);
    const ReuseHistogram back = round_trip(known_by_histogram, workload.batch_size);
    EXPECT_LT(largest_difference(histogram, back), 0.03) << table.name;
    EXPECT_NEAR(reuse_statistics(known_by_histogram, workload.batch_size).distinct_rows /
                    statistics.distinct_rows,
                1.0, 0.15)
        << table.name;
  }
  EXPECT_GT(compared, 100);
}

TEST(HistogramReuse, ImpossibleHistogramsStillGiveValidDistributions) {
  ReuseHistogram once_only{};
  once_only[0] = 1.0;
  ReuseHistogram very_often{};
  very_often[kReuseBins - 1] = 1.0;
  for (const ReuseHistogram& histogram : {once_only, very_often}) {
    for (const std::int64_t rows : {1, 10, 1'000'000}) {
      for (const double pooling : {0.001, 1.0, 50.0}) {
        round_trip(with_histogram(make_table(rows, pooling), histogram), 1'024);  // validates
      }
    }
  }
}

TEST(HistogramReuse, BatchesAreDrawnWithTheHistogram) {
  const Table table = zipf_table(1'000'000, 8.0, 1.05);
  const ReuseHistogram histogram = reuse_histogram(table, 16'384);
  Random random(3);
  IndexBatch batch;
  IndexSampler(with_histogram(table, histogram), 16'384).draw(16'384, random, batch);
  const ReuseStatistics drawn = count_reuse(batch);
  for (int bin = 0; bin < kReuseBins; ++bin) {
    EXPECT_NEAR(drawn.rows[bin] / drawn.distinct_rows, histogram[bin], 0.02);
  }
}

}  // namespace
}  // namespace neuroshard
