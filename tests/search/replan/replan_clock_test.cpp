// Planning again where time or memory is short: the way home and the exchange of devices end early.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "neuroshard/search/replan/placed_before.h"
#include "neuroshard/search/replan/plan_path.h"
#include "neuroshard/search/replan/relabelled_plan.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

constexpr int kReplanDevices = 4;

/// A table for each of the devices.
Task task_of_a_table_each() {
  std::vector<Table> tables;
  for (int t = 0; t < kReplanDevices; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100 + t, 8));
  }
  return one_host_task(std::move(tables), kReplanDevices, 1 << 20);
}

/// Each table on the device that is as many after the one of its own number.
ShardingPlan plan_shifted_by(int devices) {
  ShardingPlan plan;
  for (int t = 0; t < kReplanDevices; ++t) {
    plan.shards.push_back({t, 0, 8, (t + devices) % kReplanDevices});
  }
  return plan;
}

StopClock clock_that_is_over() { return StopClock(StopClock::Clock::now()); }
StopClock clock_of_an_hour() { return StopClock(StopClock::Clock::now() + std::chrono::hours(1)); }

TEST(ReplanClock, TheWayHomeEndsWhereTheTimeDoes) {
  const Task task = task_of_a_table_each();
  const Simulator simulator = make_simulator(task);
  const ShardingPlan home = plan_shifted_by(0);
  const ShardingPlan away = plan_shifted_by(1);
  const PlacedBefore before(task, home, task);
  const auto moved = [&](const ShardingPlan& plan) { return before.moved_bytes(plan); };
  EXPECT_EQ(way_home(simulator, away, home, moved, 0, clock_that_is_over()).shards, away.shards);
  EXPECT_EQ(way_home(simulator, away, home, moved, 0, clock_of_an_hour()).shards, home.shards);
}

TEST(ReplanClock, DevicesStayWhereTheTimeIsOver) {
  const Task task = task_of_a_table_each();
  const ShardingPlan plan = plan_shifted_by(0);
  const ShardingPlan exchanged = plan_shifted_by(1);
  const PlacedBefore before(task, plan, task);
  EXPECT_EQ(relabelled_plan(task, before, exchanged, clock_that_is_over()).shards,
            exchanged.shards);
  EXPECT_EQ(relabelled_plan(task, before, exchanged, clock_of_an_hour()).shards, plan.shards);
}

/// 64 hosts of 256 devices: a number for each pair of devices would be 2 GiB, and to assign the
/// devices of every pair of hosts take minutes.
TEST(ReplanClock, DevicesStayWhereThereAreTooMany) {
  Task task = one_host_task({make_table("a", 10, 8)}, 64 * 256, 1 << 20);
  task.topology.local_world_size = 256;
  const PlacedBefore before(task, {{{0, 0, 8, 0}}, {}}, task);
  const ShardingPlan exchanged{{{0, 0, 8, 1}}, {}};
  EXPECT_EQ(relabelled_plan(task, before, exchanged).shards, exchanged.shards);
}

}  // namespace
}  // namespace neuroshard
