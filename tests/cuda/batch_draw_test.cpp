// Batches as the device draws them, drawn on the host: bags and rows have the table's distribution.
#include "neuroshard/collect/compute/cuda/batch_draw.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "neuroshard/workload/reuse/index_batch.h"
#include "neuroshard/workload/reuse/index_distribution.h"
#include "tests/core/reuse_bin.h"

namespace neuroshard::cuda {
namespace {

RC_GTEST_PROP(BagLengths, AreThePoolingFactorRoundedDownOrUp, (std::uint64_t seed)) {
  Random random(seed);
  const double pooling = random.uniform(0.0, random.uniform() < 0.5 ? 3.0 : 1e6);
  const std::int64_t batch_size = random.integer(1, 1 << 30);
  const BagLengths lengths = bag_lengths(pooling, random());
  RC_ASSERT(lengths.offset(0) == 0);
  const double total = static_cast<double>(lengths.offset(batch_size));
  RC_ASSERT(std::abs(total - pooling * static_cast<double>(batch_size)) <= 2.0);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t bag = random.integer(0, batch_size - 1);
    const std::int64_t length = lengths.offset(bag + 1) - lengths.offset(bag);
    RC_ASSERT(length == lengths.whole || length == lengths.whole + 1);
    RC_ASSERT(length <= lengths.longest());
  }
}

/// All lookups of a batch, as the kernel draws them.
std::vector<std::int64_t> draw_all(const Table& table, std::int64_t batch_size, std::uint64_t seed,
                                   std::int64_t num_rows) {
  const IndexSampler sampler(table, batch_size);
  const BagLengths lengths = bag_lengths(table.pooling_factor, seed);
  const DrawPlan plan{sampler.rows(), lengths, seed, num_rows, lengths.offset(batch_size), 0,
                      nullptr,        nullptr};
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < plan.num_lookups; ++i) rows.push_back(draw_lookup(plan, i));
  return rows;
}

Table skewed_table() {
  Table table{"t", 100'000, 8, 4.0, DataType::fp32, std::nullopt, std::nullopt};
  table.index_distribution = IndexDistribution{1.05, {}};
  return table;
}

TEST(BatchDraw, ReuseIsThatOfTheTable) {
  const Table table = skewed_table();
  constexpr std::int64_t kBatch = 16'384;
  std::map<std::int64_t, std::int64_t> hits;
  for (const std::int64_t row : draw_all(table, kBatch, 7, table.num_embeddings)) {
    ASSERT_GE(row, 0);
    ASSERT_LT(row, table.num_embeddings);
    ++hits[row];
  }
  const ReuseStatistics expected = reuse_statistics(table, kBatch);
  EXPECT_NEAR(static_cast<double>(hits.size()), expected.distinct_rows,
              0.02 * expected.distinct_rows);
  std::array<double, kReuseBins> rows{};
  for (const auto& [row, count] : hits) rows[reuse_bin(count)] += 1.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    const double spread = 4.0 * std::sqrt(expected.rows[bin]) + 4.0;
    EXPECT_NEAR(rows[bin], expected.rows[bin], spread) << bin;
  }
}

TEST(BatchDraw, RowsAreInTheTablesOrder) {
  const auto share_of_first = [](const Table& table, std::int64_t end) {
    const std::vector<std::int64_t> rows = draw_all(table, 16'384, 7, table.num_embeddings);
    const auto first = std::count_if(rows.begin(), rows.end(), [&](auto row) { return row < end; });
    return static_cast<double>(first) / static_cast<double>(rows.size());
  };
  Table ordered = skewed_table();
  ordered.row_order = RowOrder::by_frequency;
  EXPECT_NEAR(share_of_first(ordered, 1), hottest_row_share(ordered, 16'384), 0.005);
  Table measured = skewed_table();
  measured.row_access = {{0.25, 0.1}, {0.5, 0.7}, {1.0, 1.0}};
  EXPECT_NEAR(share_of_first(measured, 25'000), 0.1, 0.01);
  EXPECT_NEAR(share_of_first(measured, 50'000), 0.7, 0.01);
}

TEST(BatchDraw, SeedsDiffer) {
  const Table table = skewed_table();
  EXPECT_NE(draw_all(table, 100, 7, 100'000), draw_all(table, 100, 8, 100'000));
}

TEST(BatchDraw, LargeTablesWrapAroundTheArena) {
  for (const std::int64_t row : draw_all(skewed_table(), 1000, 3, 17)) {
    ASSERT_GE(row, 0);
    ASSERT_LT(row, 17);
  }
}

}  // namespace
}  // namespace neuroshard::cuda
