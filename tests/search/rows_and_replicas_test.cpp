// Plans with slices of rows and replicated tables: valid, never predicted to be dearer than the
// beam search's of columns alone, and only where they are allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/search/improved_plan.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::IsEmpty;
using testing_tasks::arbitrary_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;
using testing_tasks::with_row_orders;

constexpr Cuts kAll{};
constexpr Cuts kColumns{.columns = true, .rows = false, .replicas = false};

PlannerOptions options_with(const Cuts& cuts) {
  PlannerOptions options;
  options.cuts = cuts;
  options.steps = 2'000;
  return options;
}

PlanningResult planned(const Simulator& simulator, const Cuts& cuts) {
  return NeuroShardPlanner().plan(simulator, options_with(cuts));
}

TEST(RowsAndReplicas, ATableWithMostOfTheLookupsIsCutIntoSlices) {
  Task task = one_host_task({make_table("hot", 1'000'000, 64, 100.0), make_table("b", 1'000, 64)},
                            4, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  const Simulator simulator = make_simulator(task);
  const PlanningResult columns = planned(simulator, kColumns);
  const PlanningResult rows =
      planned(simulator, {.columns = true, .rows = true, .replicas = false});
  EXPECT_FALSE(columns.plan.has_row_slices());
  EXPECT_TRUE(rows.plan.has_row_slices());
  EXPECT_THAT(violations(simulator.task(), rows.plan), IsEmpty());
  EXPECT_LT(rows.predicted.cost_ms, columns.predicted.cost_ms);
  EXPECT_EQ(simulator.cost(rows.plan).cost_ms, rows.predicted.cost_ms);
}

TEST(RowsAndReplicas, TheImprovementFindsNumbersOfSlicesThatHalvingDoesNot) {
  Task task = one_host_task({make_table("hot", 900'000, 64, 100.0)}, 3, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  const Simulator simulator = make_simulator(task);
  const PlanningResult result =
      planned(simulator, {.columns = true, .rows = true, .replicas = false});
  EXPECT_THAT(violations(simulator.task(), result.plan), IsEmpty());
  EXPECT_EQ(result.plan.num_row_slices(), 3);
}

TEST(RowsAndReplicas, OnlyWhereTheyAreAllowed) {
  Task task = one_host_task({make_table("hot", 1'000'000, 64, 100.0), make_table("tiny", 4, 64)}, 4,
                            std::int64_t{1} << 34);
  task.batch_size = 16'384;
  for (const bool by_table : {false, true}) {
    Task restricted = task;
    if (by_table) {
      for (Table& table : restricted.tables) table.allow = kColumns;
    } else {
      restricted.allow = kColumns;
    }
    const PlanningResult result = planned(make_simulator(restricted), kAll);
    EXPECT_FALSE(result.plan.has_row_slices());
    EXPECT_THAT(result.plan.replicated_tables, IsEmpty());
    EXPECT_EQ(result.plan.shards, planned(make_simulator(task), kColumns).plan.shards);
  }
  const ShardingPlan whole = planned(make_simulator(task), {false, false, false}).plan;
  EXPECT_EQ(whole.shards.size(), 2u);
}

/// Rows by frequency: the first slices are of few rows, and all devices take about as long.
TEST(RowsAndReplicas, SlicesByFrequencyCostAsMuchAsEachOther) {
  Task task = one_host_task({make_table("hot", 1'000'000, 64, 100.0), make_table("b", 1'000, 64)},
                            4, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  Table& hot = task.tables.front();
  hot.index_distribution = IndexDistribution{.zipf_exponent = 1.05};
  hot.row_order = RowOrder::by_frequency;
  const Simulator simulator = make_simulator(task);
  const PlanningResult rows =
      planned(simulator, {.columns = false, .rows = true, .replicas = false});
  ASSERT_TRUE(rows.plan.has_row_slices());
  EXPECT_THAT(violations(simulator.task(), rows.plan), IsEmpty());
  for (const Shard& shard : rows.plan.shards) {
    if (shard.table != 0) continue;
    EXPECT_LT(shard.row_offset == 0 ? shard.num_rows : 0, 50'000);
  }
  const double longest = longest_compute_ms(rows.predicted);
  for (const DeviceCost& device : rows.predicted.devices) {
    EXPECT_GT(device.compute_ms, 0.8 * longest);
  }
  EXPECT_LT(rows.predicted.cost_ms, planned(simulator, {false, false, false}).predicted.cost_ms);
}

/// Cold rows take the memory of two devices, hot ones the time of the others.
TEST(RowsAndReplicas, RowsByFrequencyInTightMemory) {
  Task task = one_host_task({make_table("hot", 10'000'000, 4, 50.0)}, 4, 80'000'000);
  task.batch_size = 16'384;
  Table& hot = task.tables.front();
  hot.index_distribution = IndexDistribution{.zipf_exponent = 1.1};
  hot.row_order = RowOrder::by_frequency;
  const Simulator simulator = make_simulator(task);
  const ShardingPlan by_hand{{{0, 0, 4, 0, 0, 17},
                              {0, 0, 4, 1, 17, 2'546},
                              {0, 0, 4, 2, 2'563, 4'998'718},
                              {0, 0, 4, 3, 5'001'281, 4'998'719}},
                             {}};
  ASSERT_THAT(violations(simulator.task(), by_hand), IsEmpty());
  EXPECT_LT(planned(simulator, {}).predicted.cost_ms, 1.01 * simulator.cost(by_hand).cost_ms);

  // With another table, which leaves no device room for half of the cold rows.
  task.tables.push_back(make_table("cold", 2'000'000, 16, 0.1));
  const Simulator two = make_simulator(task);
  const PlanningResult found = planned(two, {});
  EXPECT_THAT(violations(two.task(), found.plan), IsEmpty());
  const auto slices = std::count_if(found.plan.shards.begin(), found.plan.shards.end(),
                                    [](const Shard& shard) { return shard.table == 0; });
  EXPECT_GE(slices, 4);
  EXPECT_LT(found.predicted.cost_ms, 1.5 * planned(simulator, {}).predicted.cost_ms);
}

/// As DLRM-DCNv2 on 64 GPUs: a device's share is fewer columns than a table has, and a table that
/// is cut gains nothing before all the others are cut.
TEST(RowsAndReplicas, FewTablesOnManyDevicesAreAllCut) {
  constexpr int kHot = 2;
  constexpr int kOthers = 24;
  constexpr int kDevices = 64;
  std::vector<Table> tables;
  for (int t = 0; t < kHot + kOthers; ++t) {
    const double pooling_factor = t < kHot ? 64.0 : 4.0;
    tables.push_back(make_table("t" + std::to_string(t), 10'000'000, 128, pooling_factor));
  }
  Task task = one_host_task(std::move(tables), kDevices, std::int64_t{1} << 36);
  task.batch_size = 131'072;
  task.topology.local_world_size = 8;
  const Simulator simulator = make_simulator(task);
  ShardingPlan by_hand;  // each hot table on 8 devices, each other one on two
  for (int device = 0; device < kDevices; ++device) {
    const int other = device - 8 * kHot;
    by_hand.shards.push_back(other < 0 ? Shard{device / 8, device % 8 * 16, 16, device}
                                       : Shard{kHot + other / 2, other % 2 * 64, 64, device});
  }
  ASSERT_THAT(violations(simulator.task(), by_hand), IsEmpty());
  const PlanningResult result = planned(simulator, kAll);
  EXPECT_THAT(violations(simulator.task(), result.plan), IsEmpty());
  EXPECT_LT(result.predicted.cost_ms, simulator.cost(by_hand).cost_ms);
}

RC_GTEST_PROP(RowsAndReplicasProperty, PlansAreValidAndNoDearer, ()) {
  Task task = task_of_any_tightness();
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  std::optional<PlanningResult> columns;
  try {
    columns = BeamSearchPlanner().plan(simulator, {});
  } catch (const InfeasibleError&) {
  }
  RC_PRE(columns.has_value());
  const PlanningResult all = planned(simulator, kAll);
  RC_ASSERT(violations(simulator.task(), all.plan) == std::vector<std::string>{});
  RC_ASSERT(simulator.cost(all.plan).cost_ms == all.predicted.cost_ms);
  RC_ASSERT(all.predicted.cost_ms <= columns->predicted.cost_ms);
  PlannerOptions two_threads = options_with(kAll);
  two_threads.num_threads = 2;
  PlannerOptions one_thread = options_with(kAll);
  one_thread.num_threads = 1;
  RC_ASSERT(NeuroShardPlanner().plan(simulator, two_threads).plan.shards ==
            NeuroShardPlanner().plan(simulator, one_thread).plan.shards);
}

}  // namespace
}  // namespace neuroshard
