// Placement by time and memory at once: valid, and far better than by time alone where the tables
// nearly fill the devices.
#include "neuroshard/search/beam/tight_placement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::IsEmpty;
using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::with_row_orders;

constexpr std::int64_t kManyPieces = 25'000;

std::optional<PlanningResult> tightly_placed(const Simulator& simulator, bool rows) {
  return plan_by_time_and_memory(simulator, rows, kManyPieces);
}

std::int64_t bytes_of_tables(const Task& task) {
  std::int64_t bytes = 0;
  for (const Table& table : task.tables) {
    bytes += shard_bytes(table, table.embedding_dim, task.optimizer);
  }
  return bytes;
}

/// Tables of 10,000 to 10 million rows that take `fill` of the memory.
Task filled_task(int num_tables, int num_devices, double fill) {
  Random random(1);
  std::vector<Table> tables;
  for (int t = 0; t < num_tables; ++t) {
    const auto rows = static_cast<std::int64_t>(std::exp(random.uniform(9.2, 16.1)));
    tables.push_back(make_table(fmt::format("t{}", t), rows,
                                std::int64_t{4} << random.integer(0, 5),
                                random.uniform(1.0, 30.0)));
  }
  Task task = one_host_task(std::move(tables), num_devices, 0);
  task.batch_size = 65'536;
  const double bytes = static_cast<double>(bytes_of_tables(task)) / fill / num_devices;
  task.topology.memory_bytes.assign(num_devices, static_cast<std::int64_t>(bytes));
  return task;
}

RC_GTEST_PROP(TightPlacementProperty, PlansAreValidAndCostWhatTheySay, ()) {
  Task task = conditioned_task();
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  for (Table& table : task.tables) {
    if (*rc::gen::inRange(0, 4) > 0) continue;
    table.devices = {*rc::gen::inRange(0, task.topology.world_size)};
  }
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  const bool rows = *rc::gen::arbitrary<bool>();
  const std::optional<PlanningResult> result = tightly_placed(simulator, rows);
  RC_CLASSIFY(result.has_value(), "placed");
  if (!result) return;
  RC_ASSERT(violations(simulator.task(), result->plan).empty());
  RC_ASSERT(rows || !result->plan.has_row_slices());
  RC_ASSERT(result->predicted.cost_ms == simulator.cost(result->plan).cost_ms);
  RC_ASSERT(tightly_placed(simulator, rows)->plan.shards == result->plan.shards);
}

TEST(TightPlacement, IsFarCheaperThanByTimeAloneWhereTablesNearlyFillTheDevices) {
  constexpr int kDevices = 32;
  const Simulator ample = make_simulator(filled_task(300, kDevices, 0.3));
  const double ample_ms = beam_search(ample, {}, 1).predicted.cost_ms;
  const Simulator tight = make_simulator(filled_task(300, kDevices, 0.98));
  const std::optional<PlanningResult> by_both = tightly_placed(tight, true);
  ASSERT_TRUE(by_both.has_value());
  EXPECT_THAT(violations(tight.task(), by_both->plan), IsEmpty());
  EXPECT_LT(by_both->predicted.cost_ms, 1.2 * ample_ms);
  EXPECT_GT(beam_search(tight, {}, 1).predicted.cost_ms, 1.3 * ample_ms);
  PlannerOptions options;
  options.steps = 1;
  const PlanningResult planned = NeuroShardPlanner().plan(tight, options);
  EXPECT_LE(planned.predicted.cost_ms, by_both->predicted.cost_ms);
}

TEST(TightPlacement, MemoryIsTightFromThreeQuartersOn) {
  EXPECT_FALSE(is_memory_tight(filled_task(50, 4, 0.74)));
  EXPECT_TRUE(is_memory_tight(filled_task(50, 4, 0.76)));
}

TEST(TightPlacement, FindsNoneWhereNothingFits) {
  EXPECT_FALSE(tightly_placed(make_simulator(filled_task(20, 4, 1.01)), true).has_value());
}

/// Parts of a mean device beyond what the potentials' exponents may be.
TEST(TightPlacement, TablesOfNearlyAllTimeAreApartFromEachOther) {
  std::vector<Table> tables;
  for (int t = 0; t < 4; ++t) {
    tables.push_back(make_table(fmt::format("hot{}", t), 1'000, 4, 10'000.0));
    tables.back().allow = {.columns = false, .rows = false, .replicas = false};
  }
  for (int t = 0; t < 100; ++t)
    tables.push_back(make_table(fmt::format("t{}", t), 1'000, 4, 0.001));
  Task task = one_host_task(std::move(tables), 100, 0);
  task.topology.memory_bytes.assign(100, 1'000 * 4 * 4 * 2);
  const std::optional<PlanningResult> result = tightly_placed(make_simulator(task), true);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(std::isfinite(result->predicted.cost_ms));
  std::vector<int> devices;
  for (const Shard& shard : result->plan.shards) {
    if (shard.table < 4) devices.push_back(shard.device);
  }
  ASSERT_EQ(devices.size(), 4u);
  std::sort(devices.begin(), devices.end());
  EXPECT_EQ(std::unique(devices.begin(), devices.end()), devices.end());
}

TEST(TightPlacement, TheClockStopsIt) {
  const Simulator simulator = make_simulator(filled_task(300, 32, 0.98));
  const StopClock over(StopClock::Clock::now() - std::chrono::seconds(1));
  EXPECT_THROW((void)plan_by_time_and_memory(simulator, true, kManyPieces, over), TimeIsOver);
}

}  // namespace
}  // namespace neuroshard
