// Slices of rows that cost the same, by models of which that is known.
#include "neuroshard/cost/ordered_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing_tasks::make_table;

constexpr std::int64_t kOrderedBatch = 4096;

/// Each lookup costs 1, each distinct row 10 more, all times a factor.
class MissesCost : public ComputeCostModel {
 public:
  explicit MissesCost(double factor = 1.0) : factor_(factor) {}
  std::string name() const override { return "misses"; }
  std::size_t state_size() const override { return 2; }
  void encode(const TableStatistics& table, std::int64_t, const OperatorSettings& settings,
              std::span<double> contribution) const override {
    contribution[0] = 1.0;
    contribution[1] = static_cast<double>(settings.batch_size) * table.pooling_factor +
                      10.0 * table.distinct_rows;
  }
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i] = factor_ * (states[2 * i + 1] + (piece.empty() ? 0.0 : piece[1]));
    }
  }

 private:
  double factor_;
};

OrderedRows ordered(const Table& table, double factor = 1.0) {
  return {table,
          table_statistics(table, kOrderedBatch),
          std::make_shared<const MissesCost>(factor),
          {kOrderedBatch, Optimizer::sgd}};
}

/// A hundred hot rows and a million cold ones.
Table hot_and_cold() {
  Table table = make_table("t", 1'000'100, 16, 20.0);
  table.index_distribution = IndexDistribution{0.0, {{100, 0.9}, {1'000'000, 0.1}}};
  table.row_order = RowOrder::by_frequency;
  return table;
}

double longest_slice(const OrderedRows& rows, const std::vector<std::int64_t>& ends) {
  double longest = 0.0;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const RangeAccess range = rows.accesses().range(ends[i], ends[i + 1] - ends[i]);
    longest = std::max(longest, range.reuse.num_indices + 10.0 * range.reuse.distinct_rows);
  }
  return longest;
}

TEST(OrderedRows, SlicesCostTheSame) {
  const Table table = hot_and_cold();
  const OrderedRows rows = ordered(table);
  const double whole = longest_slice(rows, {0, table.num_embeddings});
  for (const int slices : {2, 4, 8}) {
    const auto cut = [&](const RowWeights& weights) {
      return longest_slice(rows, weights.equal_ends(slices, 1, table.num_embeddings));
    };
    // One of the 16 blocks has both kinds of rows, which are taken to cost the same.
    EXPECT_LT(cut(rows.costs()), 1.35 * whole / slices) << slices;
    EXPECT_LT(cut(rows.costs()), 0.9 * cut(rows.accesses().hits())) << slices;
  }
}

TEST(OrderedRows, WithoutAUsablePriceTheAccessesCount) {
  const Table table = hot_and_cold();
  for (const double factor :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::max()}) {
    const OrderedRows rows = ordered(table, factor);
    EXPECT_EQ(rows.costs().equal_ends(4, 1, table.num_embeddings),
              rows.accesses().hits().equal_ends(4, 1, table.num_embeddings))
        << factor;
  }
}

TEST(OrderedRows, FewRowsAndRowsThatAreNeverHit) {
  Table table = make_table("t", 1, 16, 20.0);
  table.index_distribution = IndexDistribution{.zipf_exponent = 1.0};
  table.row_order = RowOrder::by_frequency;
  EXPECT_THAT(ordered(table).costs().equal_ends(1, 1, 1), ElementsAre(0, 1));
  table.num_embeddings = 3;
  EXPECT_THAT(ordered(table).costs().equal_ends(3, 1, 3), ElementsAre(0, 1, 2, 3));
  table.num_embeddings = 1000;
  table.index_distribution.reset();
  table.row_order = RowOrder::hashed;
  table.row_access = {{0.1, 0.0}, {0.2, 1.0}, {1.0, 1.0}};
  const std::vector<std::int64_t> ends = ordered(table).costs().equal_ends(4, 1, 1000);
  EXPECT_THAT(ends, ElementsAre(0, 125, 150, 175, 1000));
}

TEST(OrderedRows, ThreadsShareWhatTheFirstFindsOut) {
  const OrderedRows rows = ordered(hot_and_cold());
  std::vector<const RowWeights*> seen(4);
  std::vector<std::thread> threads;
  threads.reserve(seen.size());
  for (const RowWeights*& weights : seen) {
    threads.emplace_back([&rows, &weights] { weights = &rows.costs(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(seen, testing::Each(&rows.costs()));
}

}  // namespace
}  // namespace neuroshard
