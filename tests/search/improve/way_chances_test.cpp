// Chances of ways of cutting rows: all have some, the cheaper ones more, and the own one is not
// drawn.
#include "neuroshard/search/improve/way_chances.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/search/slices/sliced_task.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// One table of 128 columns on each device but the last, whole.
Simulator simulator_of_wide_tables(int num_devices) {
  std::vector<Table> tables;
  for (int t = 0; t + 1 < num_devices; ++t) {
    tables.push_back(make_table("t" + std::to_string(t), 1'000'000, 128, 20.0));
  }
  return make_simulator(one_host_task(std::move(tables), num_devices, std::int64_t{1} << 40));
}

ShardingPlan whole_on_own_devices(const Simulator& simulator) {
  ShardingPlan plan;
  const std::vector<Table>& tables = simulator.task().tables;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    plan.shards.push_back({static_cast<int>(t), 0, tables[t].embedding_dim, static_cast<int>(t)});
  }
  return plan;
}

RC_GTEST_PROP(WayChancesProperty, EachWayHasSomeAndTheOwnOneIsNeverDrawn, ()) {
  const int num_devices = *rc::gen::inRange(2, 9);
  std::vector<Table> tables;
  for (int t = 0; t < num_devices; ++t) {
    tables.push_back(make_table("t" + std::to_string(t), *rc::gen::inRange<std::int64_t>(1, 200),
                                4 * *rc::gen::inRange<std::int64_t>(1, 17),
                                *rc::gen::inRange(1, 40) / 4.0));
  }
  const Simulator simulator = make_simulator(
      one_host_task(std::move(tables), num_devices, std::int64_t{1} << 30), arbitrary_compute());
  const SlicedTask sliced(simulator, whole_on_own_devices(simulator), 8);
  const Slicings& slicings = sliced.slicings();
  const WayChances chances(sliced.simulator(), sliced.plan(), slicings, {});
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  for (int group = 0; group < slicings.num_groups(); ++group) {
    const std::vector<double>& of_group = chances.of(group);
    const int num_ways = static_cast<int>(slicings.ways(group).size());
    RC_ASSERT(static_cast<int>(of_group.size()) == num_ways);
    RC_ASSERT(std::abs(std::accumulate(of_group.begin(), of_group.end(), 0.0) - 1.0) < 1e-12);
    for (const double chance : of_group) RC_ASSERT(chance >= 0.199 / num_ways);
    for (int way = 0; way < num_ways; ++way) {
      const int other = chances.other_way(random, {group, way});
      RC_ASSERT(other >= 0 && other < num_ways && other != way);
    }
  }
}

TEST(WayChances, AreThoseOfTheDraws) {
  const Simulator simulator = simulator_of_wide_tables(8);
  const SlicedTask sliced(simulator, whole_on_own_devices(simulator), 8);
  const WayChances chances(sliced.simulator(), sliced.plan(), sliced.slicings(), {});
  const std::vector<double>& expected = chances.of(0);
  std::vector<int> drawn(expected.size());
  Random random(7);
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) ++drawn[chances.other_way(random, {0, 0})];
  EXPECT_EQ(drawn[0], 0);
  for (std::size_t way = 1; way < expected.size(); ++way) {
    // Five standard deviations, at the most.
    EXPECT_NEAR(drawn[way] / double{kDraws}, expected[way] / (1.0 - expected[0]), 0.008) << way;
  }
}

TEST(WayChances, CheaperWaysHaveMore) {
  const Simulator simulator = simulator_of_wide_tables(8);
  const SlicedTask sliced(simulator, whole_on_own_devices(simulator), 8);
  const Slicings& slicings = sliced.slicings();
  const WayChances chances(sliced.simulator(), sliced.plan(), slicings, {});
  // Slices that cost the same add launches and partial sums to what the whole table takes: the
  // more of them, the more.
  const std::vector<double>& of_group = chances.of(0);
  double last = of_group[0];
  std::size_t slices = 1;
  for (std::size_t way = 1; way < of_group.size(); ++way) {
    const std::size_t count = slicings.ways(0)[way].size();
    if (count <= slices) continue;
    EXPECT_LT(of_group[way], last) << count;
    last = of_group[way];
    slices = count;
  }
  EXPECT_EQ(slices, 8u);
}

TEST(WayChances, AreTheSameWhereTheModelHasNoTangent) {
  /// A model without structure.
  class Unstructured final : public ComputeCostModel {
   public:
    std::string name() const override { return "unstructured"; }
    std::size_t state_size() const override { return 2; }
    void encode(const TableStatistics& table, std::int64_t num_columns, const OperatorSettings&,
                std::span<double> contribution) const override {
      contribution[0] = 1.0;
      contribution[1] = table.pooling_factor * static_cast<double>(num_columns) / 1024.0;
    }
    void costs_with(std::span<const double> states, std::span<const double> piece,
                    std::span<double> costs) const override {
      for (std::size_t i = 0; i < costs.size(); ++i) {
        costs[i] = states[2 * i + 1] + (piece.empty() ? 0.0 : piece[1]);
      }
    }
  };
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1'000, 64, 9.0), make_table("b", 1'000, 64, 9.0)}, 4,
                    std::int64_t{1} << 30),
      std::make_shared<Unstructured>());
  const SlicedTask sliced(simulator, whole_on_own_devices(simulator), 8);
  const WayChances chances(sliced.simulator(), sliced.plan(), sliced.slicings(), {});
  ASSERT_EQ(sliced.slicings().num_groups(), 2);
  for (const double chance : chances.of(0)) {
    EXPECT_NEAR(chance, 1.0 / static_cast<double>(chances.of(0).size()), 1e-12);
  }
}

}  // namespace
}  // namespace neuroshard
