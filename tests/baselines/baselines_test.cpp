// The baselines: valid plans on any task, the same plan for the same seed, and the balance that
// each aims at.
#include "neuroshard/baselines/baselines.h"
#include "neuroshard/baselines/planner_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "neuroshard/baselines/random_placement.h"
#include "neuroshard/baselines/torchrec_like.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "tests/cost/analytic_simulator.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_tasks::analytic;
using testing_tasks::arbitrary_task;
using testing_tasks::make_table;
using testing_tasks::make_topology;
using testing_tasks::with_conditions;
using testing_tasks::with_pins;
using testing_tasks::with_row_orders;

Task make_task(std::vector<Table> tables, int num_devices, std::int64_t memory_bytes) {
  Task task;
  task.batch_size = 64;
  task.tables = std::move(tables);
  task.topology = make_topology(num_devices, num_devices, memory_bytes);
  return task;
}

const PlannerOptions kOfColumns = [] {
  PlannerOptions options;
  options.cuts = kColumnsAlone;
  return options;
}();

/// Devices of the tables, in the order of the tables; each table must be whole.
std::vector<int> devices_of(std::string_view planner, const Task& task, std::uint64_t seed = 0) {
  PlannerOptions options;
  options.seed = seed;
  const PlanningResult result = find_planner(planner)->plan(analytic(task), options);
  EXPECT_EQ(result.plan.shards.size(), task.tables.size());
  std::vector<int> devices;
  for (const Shard& shard : result.plan.shards) devices.push_back(shard.device);
  return devices;
}

std::string refusal(std::string_view planner, const Task& task) {
  try {
    (void)find_planner(planner)->plan(analytic(task), kOfColumns);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "no error";
}

constexpr std::int64_t kAmple = std::int64_t{1} << 40;

TEST(Baselines, AreFoundByName) {
  const std::vector<std::unique_ptr<Planner>> planners = make_baselines();
  std::vector<std::string_view> names;
  for (const auto& planner : planners) names.push_back(planner->name());
  EXPECT_THAT(names, testing::ElementsAre("random", "greedy-size", "greedy-dim", "greedy-lookup",
                                          "greedy-lookup-size", "torchrec-like"));
  for (const std::string_view name : names) EXPECT_EQ(find_planner(name)->name(), name);
  try {
    (void)find_planner("best");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "algorithm: expected one of neuroshard, beam-search, random, greedy-size, greedy-dim, "
        "greedy-lookup, greedy-lookup-size, torchrec-like, got \"best\"");
  }
}

TEST(Baselines, GreedyBalancesItsQuantity) {
  //                                    rows   dim  pooling
  const Task task = make_task({make_table("a", 1000, 16, 1.0), make_table("b", 10, 64, 2.0),
                               make_table("c", 10, 32, 50.0), make_table("d", 10000, 4, 3.0)},
                              2, kAmple);
  // size: d 40,000, a 16,000, b 640, c 320 (times 4 bytes)
  EXPECT_THAT(devices_of("greedy-size", task), testing::ElementsAre(1, 1, 1, 0));
  // dim: b 64, c 32, a 16, d 4
  EXPECT_THAT(devices_of("greedy-dim", task), testing::ElementsAre(1, 0, 1, 1));
  // lookup: c 1,600, b 128, a 16, d 12
  EXPECT_THAT(devices_of("greedy-lookup", task), testing::ElementsAre(1, 1, 0, 1));
}

TEST(Baselines, GreedyLookupSizeWeighsByTheLogarithmOfRows) {
  // dim * pooling * log10(rows): a 100 * 1, b 50 * 4, c 90 * 1, d 1 * 1
  const Task task = make_task({make_table("a", 10, 100, 1.0), make_table("b", 10000, 50, 1.0),
                               make_table("c", 10, 90, 1.0), make_table("d", 10, 1, 1.0)},
                              2, kAmple);
  EXPECT_THAT(devices_of("greedy-lookup-size", task), testing::ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(devices_of("greedy-lookup", task), testing::ElementsAre(0, 1, 1, 0));
}

TEST(Baselines, GreedyTakesTheNextDeviceWhenTheFirstIsFull) {
  Task task = make_task({make_table("a", 100, 8), make_table("b", 10, 4), make_table("c", 90, 4)},
                        2, kAmple);
  EXPECT_THAT(devices_of("greedy-dim", task), testing::ElementsAre(0, 1, 1));
  task.topology.memory_bytes = {4700, 200};
  EXPECT_THAT(devices_of("greedy-dim", task), testing::ElementsAre(0, 1, 0));
}

TEST(Baselines, SayWhichTableHasNoRoom) {
  const Task task = make_task(
      {make_table("a", 1 << 20, 255), make_table("b", 1 << 20, 255), make_table("c", 1 << 20, 255)},
      2, std::int64_t{3} << 29);
  const std::string tail =
      "no device has room for the whole table \"c\" of 1020.00 MiB; the most room left is 516.00 "
      "MiB";
  EXPECT_EQ(refusal("greedy-size", task), "greedy-size: " + tail);
  EXPECT_EQ(refusal("greedy-lookup-size", task), "greedy-lookup-size: " + tail);
  EXPECT_EQ(refusal("random", task), "random (100 tries): " + tail);
  EXPECT_EQ(refusal("torchrec-like", task), "torchrec-like (44 proposals): " + tail);
}

TEST(Baselines, KeepToPins) {
  Task task = make_task({make_table("a", 1000, 64), make_table("b", 1000, 64, 5.0),
                         make_table("c", 1000, 32), make_table("d", 1000, 16)},
                        4, kAmple);
  task.tables[0].devices = {3};
  task.tables[1].devices = {2, 3};
  task.tables[2].same_device_as = "d";
  for (const auto& planner : make_baselines()) {
    const PlanningResult result = planner->plan(analytic(task), {});
    EXPECT_THAT(violations(task, result.plan), testing::IsEmpty()) << planner->name();
  }
  EXPECT_THAT(devices_of("greedy-dim", task), testing::ElementsAre(3, 2, 0, 0));
}

TEST(Baselines, SayWhichPinnedTableHasNoRoom) {
  Task task = make_task(
      {make_table("a", 1 << 20, 255), make_table("b", 1 << 20, 255), make_table("c", 1 << 20, 255)},
      4, std::int64_t{3} << 29);
  task.tables[1].devices = {0};
  task.tables[2].devices = {0};
  EXPECT_EQ(refusal("greedy-size", task),
            "greedy-size: no device has room for the whole table \"b\" of 1020.00 MiB; the most "
            "room left on device 0, where alone it may lie, is 516.00 MiB");
  task.tables[1].devices = {};
  task.tables[1].same_device_as = "a";
  EXPECT_EQ(
      refusal("greedy-size", task),
      "greedy-size: no device has room for the whole table \"a\" and all that stay with it of "
      "1.99 GiB; the most room left is 1.50 GiB");
}

TEST(Baselines, RandomFollowsItsSeed) {
  std::vector<Table> tables;
  for (int t = 0; t < 40; ++t) tables.push_back(make_table(fmt::format("t{}", t), 10, 4));
  const Task task = make_task(tables, 4, kAmple);
  EXPECT_NE(devices_of("random", task, 7), devices_of("random", task, 8));
  const std::vector<int> devices = devices_of("random", task, 7);
  EXPECT_EQ(std::set<int>(devices.begin(), devices.end()).size(), 4U);
}

TEST(Baselines, RandomTriesAgainWhenMemoryIsTight) {
  // Halves and thirds of a device: with the halves apart, the last third finds no room.
  const Task task =
      make_task({make_table("a", 75, 4), make_table("b", 75, 4), make_table("c", 50, 4),
                 make_table("d", 50, 4), make_table("e", 50, 4)},
                2, 2400);
  constexpr int kSeeds = 64;
  int stuck = 0;
  PlannerOptions options;
  for (int seed = 0; seed < kSeeds; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    EXPECT_THAT(
        devices_of("random", task, options.seed),
        testing::AnyOf(testing::ElementsAre(0, 0, 1, 1, 1), testing::ElementsAre(1, 1, 0, 0, 0)));
    try {
      (void)RandomBaseline(1).plan(analytic(task), options);
    } catch (const InfeasibleError&) {
      ++stuck;
    }
  }
  EXPECT_GT(stuck, kSeeds / 8);
  EXPECT_LT(stuck, kSeeds);
}

TEST(TorchRecLike, CutsATableThatIsSlowerThanTheRest) {
  const Task task =
      make_task({make_table("slow", 1000, 128, 20.0), make_table("quick", 1000, 32)}, 4, kAmple);
  const PlanningResult result = find_planner("torchrec-like")->plan(analytic(task), kOfColumns);
  EXPECT_EQ(result.plan.shards.size(), 5U);  // 4 times 32 columns, and the other
  EXPECT_TRUE(violations(task, result.plan).empty());
  std::set<int> devices;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(result.plan.shards[i].num_columns, 32);
    devices.insert(result.plan.shards[i].device);
  }
  EXPECT_EQ(devices.size(), 4U);
  EXPECT_EQ(result.stats.states_expanded, 22);
}

TEST(TorchRecLike, ShardsAreOfTheLeastDivisorThatIsWideEnough) {
  const auto shards_of = [](std::int64_t dim, std::int64_t least) {
    const Task task = make_task({make_table("slow", 1000, dim, 20.0)}, 8, kAmple);
    TorchRecLikeOptions options;
    options.min_shard_columns = least;
    const ShardingPlan plan = TorchRecLikePlanner(options).plan(analytic(task), kOfColumns).plan;
    EXPECT_TRUE(violations(task, plan).empty());
    return plan.shards;
  };
  EXPECT_THAT(shards_of(120, 28),
              testing::ElementsAre(Shard{0, 0, 40, 0}, Shard{0, 40, 40, 1}, Shard{0, 80, 40, 2}));
  EXPECT_EQ(shards_of(100, 20).size(), 5U);
  // 25 and 50 are no multiples of 4.
  EXPECT_THAT(shards_of(100, 24), testing::ElementsAre(Shard{0, 0, 100, 0}));
}

TEST(TorchRecLike, CutsWhereWholeTablesDoNotFit) {
  const Task task = make_task({make_table("large", 1000, 128)}, 4, 1000 * 128 * 4 / 4);
  const PlanningResult result = find_planner("torchrec-like")->plan(analytic(task), kOfColumns);
  EXPECT_EQ(result.plan.shards.size(), 4U);
  const Task tighter = make_task({make_table("large", 1000, 128)}, 8, 1000 * 128 * 4 / 8);
  EXPECT_EQ(refusal("torchrec-like", tighter),
            "torchrec-like (12 proposals): no device has room for 32 columns of table \"large\" of "
            "125.00 KiB; the most room left is 62.50 KiB");
}

RC_GTEST_PROP(BaselinesProperty, PlansAreValidPricedAndTheSameForTheSameSeed, ()) {
  Task task = *arbitrary_task(*rc::gen::element(0.8, 1.0, 1.3, 2.0));
  if (*rc::gen::arbitrary<bool>()) task = with_conditions(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = with_pins(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  const Simulator simulator = analytic(task);
  PlannerOptions options;
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  for (const auto& planner : make_baselines()) {
    try {
      const PlanningResult result = planner->plan(simulator, options);
      RC_ASSERT(violations(task, result.plan).empty());
      RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
      RC_ASSERT(result.plan.shards == planner->plan(simulator, options).plan.shards);
      RC_ASSERT(result.stats.plans_priced == 1);
    } catch (const InfeasibleError& error) {
      RC_ASSERT(std::string_view(error.what()).starts_with(planner->name()));
      RC_ASSERT(std::string(error.what()).find(" room for ") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace neuroshard
