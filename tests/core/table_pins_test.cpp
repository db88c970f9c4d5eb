// Pins: groups of tables and their devices, the cuts that are left, refused tasks and invalid
// plans.
#include "neuroshard/core/table_pins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// "a" to "e", of 100 rows and 16 columns each, on four devices.
Task five_tables() {
  Task task;
  task.batch_size = 64;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    task.tables.push_back(make_table(name, 100, 16));
  }
  task.topology = make_topology(4, 2, 1'000'000);
  return task;
}

/// "d" stays with "b", that with "e".
Task with_group() {
  Task task = five_tables();
  task.tables[3].same_device_as = "b";
  task.tables[1].same_device_as = "e";
  return task;
}

TEST(TablePins, NoneOfATaskThatSaysNothing) {
  const TablePins pins(five_tables());
  EXPECT_THAT(pins.groups(), IsEmpty());
  EXPECT_FALSE(pins.restricts_devices());
  EXPECT_EQ(pins.group_of(4), nullptr);
  EXPECT_THAT(pins.devices_of(4), IsEmpty());
  EXPECT_TRUE(pins.permits(4, 3));
}

TEST(TablePins, ChainsAndCyclesAreGroups) {
  Task task = with_group();
  for (const bool cycle : {false, true}) {
    if (cycle) task.tables[4].same_device_as = "d";
    EXPECT_NO_THROW(validate(task));
    const TablePins pins(task);
    ASSERT_EQ(pins.groups().size(), 1u);
    EXPECT_THAT(pins.groups()[0].tables, ElementsAre(1, 3, 4));
    EXPECT_THAT(pins.groups()[0].devices, IsEmpty());
    EXPECT_EQ(pins.group_of(3), &pins.groups().front());
    EXPECT_EQ(pins.group_of(0), nullptr);
  }
}

TEST(TablePins, AGroupMayLieWhereAllItsTablesMay) {
  Task task = with_group();
  task.tables[1].devices = {3, 0, 1};
  task.tables[3].devices = {0, 3, 2};
  task.tables[2].devices = {2};
  const TablePins pins(task);
  EXPECT_TRUE(pins.restricts_devices());
  EXPECT_THAT(pins.groups()[0].devices, ElementsAre(0, 3));
  for (const int table : {1, 3, 4}) EXPECT_THAT(pins.devices_of(table), ElementsAre(0, 3));
  EXPECT_THAT(pins.devices_of(2), ElementsAre(2));
  EXPECT_THAT(pins.devices_of(0), IsEmpty());
  EXPECT_TRUE(pins.permits(4, 3));
  EXPECT_FALSE(pins.permits(4, 1));
}

TEST(TablePins, AllDevicesAreNoRestriction) {
  Task task = five_tables();
  task.tables[0].devices = {3, 1, 0, 2};
  EXPECT_FALSE(TablePins(task).restricts_devices());
  EXPECT_TRUE(allowed_cuts(task)[0].replicas);
}

TEST(TablePins, WhatIsPinnedHasFewerCuts) {
  Task task = with_group();
  task.allow.rows = false;
  task.tables[0].devices = {0, 1, 2};
  const std::vector<Cuts> allowed = allowed_cuts(task);
  EXPECT_EQ(allowed[0], (Cuts{.columns = true, .rows = false, .replicas = false}));
  EXPECT_EQ(allowed[2], (Cuts{.columns = true, .rows = false, .replicas = true}));
  for (const int table : {1, 3, 4}) EXPECT_EQ(allowed[table], (Cuts{false, false, false}));
}

TEST(TablePins, SaysWhyATableHasFewerCuts) {
  Task task = with_group();
  task.tables[0].devices = {2, 0};
  task.tables[2].allow.columns = false;
  const TablePins pins(task);
  const auto stays_with = [&](int table) {
    return "it stays on one device with \"" + task.tables[table].name + "\"";
  };
  EXPECT_EQ(reason_against_cut(task, pins, 1, "rows"), stays_with(3));
  EXPECT_EQ(reason_against_cut(task, pins, 4, "replicas"), stays_with(1));
  EXPECT_EQ(reason_against_cut(task, pins, 0, "replicas"), "it may only lie on devices 0 and 2");
  EXPECT_EQ(reason_against_cut(task, pins, 2, "columns"), "\"allow\" does not name \"columns\"");
}

std::string refusal(const Task& task) {
  return input_error([&] { validate(task); });
}

TEST(TablePins, DevicesAreDistinctOnesOfTheTopology) {
  Task task = five_tables();
  task.tables[2].devices = {3, 4};
  EXPECT_EQ(refusal(task), "tables[2].devices[1]: expected a device from 0 to 3, got 4");
  task.tables[2].devices = {-1};
  EXPECT_EQ(refusal(task), "tables[2].devices[0]: expected a device from 0 to 3, got -1");
  task.tables[2].devices = {1, 0, 1};
  EXPECT_EQ(refusal(task), "tables[2].devices: expected each device once, got 1 twice");
}

TEST(TablePins, TablesStayWithOthersOfTheTask) {
  Task task = five_tables();
  task.tables[2].same_device_as = "f";
  EXPECT_EQ(refusal(task),
            "tables[2].same_device_as: expected the name of another table of the task, got \"f\"");
  task.tables[2].same_device_as = "c";
  EXPECT_EQ(refusal(task),
            "tables[2].same_device_as: expected the name of another table of the task, got \"c\", "
            "the table's own");
}

TEST(TablePins, AGroupHasADevice) {
  Task task = with_group();
  task.tables[1].devices = {0, 1};
  task.tables[3].devices = {2, 1};
  EXPECT_EQ(refusal(task), "no error");
  task.tables[4].devices = {3, 2};
  EXPECT_EQ(refusal(task),
            "tables[4].devices: expected one of [1], as \"e\" stays on one device with \"d\", got "
            "[2, 3]");
}

std::vector<int> devices_from(int first, int count) {
  std::vector<int> devices(static_cast<std::size_t>(count));
  std::iota(devices.begin(), devices.end(), first);
  return devices;
}

TEST(TablePins, MessagesNameTheFirstOfManyDevices) {
  EXPECT_EQ(devices_text(devices_from(3, 1)), "device 3");
  EXPECT_EQ(devices_text(devices_from(0, 9)), "devices 0, 1, 2, 3, 4, 5, 6, 7 and 8");
  EXPECT_EQ(devices_text(devices_from(0, 64)), "devices 0, 1, 2, 3, 4, 5, 6, 7 and 56 more");
  Task task = with_group();
  task.topology = make_topology(64, 64, 1'000'000);
  task.tables[1].devices = devices_from(0, 32);
  task.tables[3].devices = devices_from(32, 32);
  EXPECT_EQ(
      refusal(task),
      "tables[3].devices: expected one of [0, 1, 2, 3, 4, 5, 6, 7, 24 more], as \"d\" stays on "
      "one device with \"b\", got [32, 33, 34, 35, 36, 37, 38, 39, 24 more]");
}

/// Of a plan that has every table whole on these devices.
std::vector<std::string> pin_violations_of(const Task& task, const std::vector<int>& devices) {
  ShardingPlan plan;
  for (std::size_t t = 0; t < devices.size(); ++t) {
    plan.shards.push_back({static_cast<int>(t), 0, 16, devices[t]});
  }
  return violations(task, plan);
}

TEST(TablePins, PiecesLieWhereTheirTableMay) {
  Task task = five_tables();
  task.tables[0].devices = {3, 0, 1};
  task.tables[1].devices = {2};
  EXPECT_THAT(pin_violations_of(task, {3, 2, 0, 0, 0}), IsEmpty());
  EXPECT_THAT(pin_violations_of(task, {2, 3, 0, 0, 0}),
              ElementsAre("shards[0].device: expected \"a\" on devices 0, 1 and 3, got 2",
                          "shards[1].device: expected \"b\" on device 2, got 3"));
  const ShardingPlan cut{{{0, 0, 8, 3},
                          {0, 8, 8, 2, 0, 50},
                          {0, 8, 8, 1, 50, 50},
                          {1, 0, 16, 2},
                          {2, 0, 16, 0},
                          {3, 0, 16, 0},
                          {4, 0, 16, 0}},
                         {}};
  EXPECT_THAT(violations(task, cut),
              ElementsAre("shards[1].device: expected \"a\" on devices 0, 1 and 3, got 2"));
}

TEST(TablePins, AGroupIsTheReasonBeforeWhatIsAllowed) {
  Task task = with_group();
  task.tables[1].allow = {false, false, false};
  const ShardingPlan cut{
      {{0, 0, 16, 0}, {1, 0, 8, 1}, {1, 8, 8, 1}, {2, 0, 16, 0}, {3, 0, 16, 1}, {4, 0, 16, 1}}, {}};
  EXPECT_THAT(violations(task, cut),
              Contains("shards[1]: expected \"b\" with all its columns, as it stays on one device "
                       "with \"d\", got 8 of 16"));
}

TEST(TablePins, ATableThatMayNotLieOnEveryDeviceIsNotReplicated) {
  Task task = five_tables();
  task.tables[0].devices = {0, 1, 2};
  const ShardingPlan plan{{{1, 0, 16, 2}, {2, 0, 16, 0}, {3, 0, 16, 0}, {4, 0, 16, 0}}, {0}};
  EXPECT_THAT(violations(task, plan),
              ElementsAre("replicated_tables[0]: expected \"a\" without copies, as it may only lie "
                          "on devices 0, 1 and 2"));
  task.tables[0].devices = {0, 1, 2, 3};
  EXPECT_THAT(violations(task, plan), IsEmpty());
}

TEST(TablePins, TablesOfAGroupAreWholeAndOnOneDevice) {
  const Task task = with_group();
  EXPECT_THAT(pin_violations_of(task, {0, 2, 1, 2, 2}), IsEmpty());
  EXPECT_THAT(pin_violations_of(task, {0, 2, 1, 3, 2}),
              ElementsAre("shards[3].device: expected \"d\" on device 2 with \"b\", got 3"));
  const ShardingPlan cut{{{0, 0, 16, 0}, {1, 0, 8, 1}, {1, 8, 8, 1}, {2, 0, 16, 0}, {3, 0, 16, 1}},
                         {4}};
  EXPECT_THAT(
      violations(task, cut),
      ElementsAre("shards[1]: expected \"b\" with all its columns, as it stays on one device with "
                  "\"d\", got 8 of 16",
                  "shards[2]: expected \"b\" with all its columns, as it stays on one device with "
                  "\"d\", got 8 of 16",
                  "replicated_tables[0]: expected \"e\" without copies, as it stays on one device "
                  "with \"b\""));
}

}  // namespace
}  // namespace neuroshard
