// The generated workloads' aggregates, for several seeds, against the published ones.
#include "neuroshard/workload/generate/generated_workloads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "batch_counts.h"
#include "neuroshard/workload/generate/aggregate_statistics.h"
#include "neuroshard/workload/generate/rate_spectrum.h"
#include "neuroshard/workload/published_workloads.h"

namespace neuroshard {
namespace {

constexpr std::uint64_t kWorkloadSeeds[] = {0, 1, 2, 42, 12'345, ~std::uint64_t{0}};

void expect_published_aggregates(const Workload& workload, const LocalityFacts& facts) {
  ASSERT_EQ(workload.tables.size(), static_cast<std::size_t>(facts.num_tables));
  ASSERT_EQ(workload.batch_size, facts.batch_size);
  const AggregateStatistics actual = aggregate_statistics(workload.tables, workload.batch_size);
  EXPECT_NEAR(actual.mean_pooling_factor / facts.mean_pooling_factor, 1.0, 0.002);
  EXPECT_NEAR(actual.num_indices / facts.num_indices, 1.0, 0.002);
  EXPECT_NEAR(actual.distinct_rows / facts.num_distinct_rows, 1.0, 0.002);
  for (int bin = 0; bin < kReuseBins; ++bin) {
    EXPECT_NEAR(actual.share_of_rows[bin], facts.share_of_rows[bin], 0.002) << bin;
    EXPECT_NEAR(actual.share_of_indices[bin], facts.share_of_indices[bin], 0.002) << bin;
  }
}

void expect_plausible_tables(const Workload& workload) {
  std::set<std::string> names;
  std::vector<double> pooling_factors;
  std::vector<std::int64_t> rows;
  for (const Table& table : workload.tables) {
    validate(table, table.name);
    EXPECT_TRUE(names.insert(table.name).second);
    EXPECT_LT(table.index_distribution->access_classes.size(), 50U);
    pooling_factors.push_back(table.pooling_factor);
    rows.push_back(table.num_embeddings);
  }
  std::sort(pooling_factors.begin(), pooling_factors.end());
  std::sort(rows.begin(), rows.end());
  EXPECT_GT(pooling_factors.front(), 0.05);
  EXPECT_LT(pooling_factors[pooling_factors.size() / 2], 8.0);
  EXPECT_GT(pooling_factors.back(), 100.0);
  EXPECT_LT(pooling_factors.back(), 250.0);
  EXPECT_LT(rows.front(), 2'000);
  EXPECT_GT(rows.back(), 30'000'000);
  EXPECT_LT(rows.back(), 300'000'000);
}

TEST(GeneratedWorkloads, HaveThePublishedAggregatesForAnySeed) {
  const std::vector<LocalityFacts> facts = published_locality();
  for (const std::uint64_t seed : kWorkloadSeeds) {
    SCOPED_TRACE(seed);
    expect_published_aggregates(dlrm_2021(seed), facts[0]);
    expect_published_aggregates(dlrm_2022(seed), facts[1]);
  }
}

TEST(GeneratedWorkloads, HavePlausibleAndDifferentTables) {
  for (const std::uint64_t seed : kWorkloadSeeds) {
    SCOPED_TRACE(seed);
    expect_plausible_tables(dlrm_2021(seed));
    expect_plausible_tables(dlrm_2022(seed));
  }
}

TEST(GeneratedWorkloads, AreDecidedByTheSeed) {
  const Workload first = dlrm_2021(3);
  const Workload same = dlrm_2021(3);
  const Workload other = dlrm_2021(4);
  int equal_to_other = 0;
  for (std::size_t t = 0; t < first.tables.size(); ++t) {
    EXPECT_EQ(first.tables[t].num_embeddings, same.tables[t].num_embeddings);
    EXPECT_EQ(first.tables[t].pooling_factor, same.tables[t].pooling_factor);
    equal_to_other += first.tables[t].num_embeddings == other.tables[t].num_embeddings;
  }
  EXPECT_LT(equal_to_other, 20);
}

TEST(GeneratedWorkloads, TablesAreDrawnAsComputed) {
  const Workload workload = dlrm_2021(1);
  Random random(1);
  IndexBatch batch;
  for (std::size_t t = 0; t < workload.tables.size(); t += 100) {
    const Table& table = workload.tables[t];
    IndexSampler(table, 8'192).draw(8'192, random, batch);
    const ReuseStatistics drawn = count_reuse(batch);
    const ReuseStatistics computed = reuse_statistics(table, 8'192);
    for (int bin = 0; bin < kReuseBins; ++bin) {
      EXPECT_NEAR(drawn.rows[bin], computed.rows[bin], 5.0 * std::sqrt(computed.rows[bin] + 1.0))
          << table.name << " bin " << bin;
    }
  }
}

TEST(RateSpectrum, HasThePublishedNumberOfLookups) {
  for (const LocalityFacts& facts : published_locality()) {
    double lookups = 0.0;
    for (const RateClass& rate_class : rate_spectrum(facts)) {
      EXPECT_GT(rate_class.rows, 0.0);
      lookups += rate_class.rows * rate_class.rate;
    }
    EXPECT_NEAR(lookups / facts.num_indices, 1.0, 1e-9);
  }
}

TEST(AggregateStatistics, AreZeroForNoTables) {
  const AggregateStatistics none = aggregate_statistics({}, 1'024);
  EXPECT_EQ(none.num_tables, 0);
  EXPECT_EQ(none.distinct_rows, 0.0);
  EXPECT_EQ(none.share_of_rows[0], 0.0);
}

}  // namespace
}  // namespace neuroshard
