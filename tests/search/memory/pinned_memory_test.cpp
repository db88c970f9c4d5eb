// Shortages of the devices that tables are pinned to, and what is said of them where time is short.
#include "neuroshard/search/memory/pinned_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "neuroshard/search/memory/memory_needs.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing_tasks::kGiB;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// Each table may lie on as many devices: the first on those from 0 on, the next from 1 on, ...
Task task_of_sets(int num_sets, int devices_of_each) {
  std::vector<Table> tables;
  for (int t = 0; t < num_sets; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100, 8));
    tables.back().devices.resize(static_cast<std::size_t>(devices_of_each));
    std::iota(tables.back().devices.begin(), tables.back().devices.end(), t);
  }
  return one_host_task(std::move(tables), num_sets + devices_of_each - 1, 1 << 20);
}

/// If the last table needs more than all devices have.
std::optional<PinnedShortage> shortage_of_the_last(const Task& task, const StopClock& clock) {
  const std::vector<std::int64_t> narrowest(task.tables.size(), 1);
  std::vector<std::int64_t> needed = narrowest;
  needed.back() = std::int64_t{1} << 60;
  return pinned_shortage(task, TablePins(task), needed, narrowest, clock);
}

TEST(PinnedMemory, ManySetsOfManyDevicesAreComparedUntilTheTimeIsOver) {
  const StopClock over(StopClock::Clock::now());
  const Task few = task_of_sets(3, 2);
  const std::optional<PinnedShortage> of_few = shortage_of_the_last(few, over);
  ASSERT_TRUE(of_few.has_value());
  EXPECT_THAT(of_few->tables, ElementsAre(2));
  const Task many = task_of_sets(200, 5000);
  EXPECT_FALSE(shortage_of_the_last(many, over).has_value());
  const std::optional<PinnedShortage> of_many = shortage_of_the_last(many, {});
  ASSERT_TRUE(of_many.has_value());
  EXPECT_THAT(of_many->tables, ElementsAre(199));
}

TEST(PinnedMemory, NoTableIsNamedWhereTheTimeIsOver) {
  // Three tables of 3 GiB, two devices of 5 GiB for them; and more tables than are looked at
  // without the clock.
  Task task = one_host_task(
      {make_table("a", 1 << 24, 48), make_table("b", 1 << 24, 48), make_table("c", 1 << 24, 48)}, 4,
      5 * kGiB);
  for (Table& table : task.tables) table.devices = {1, 2};
  for (int t = 0; t < 100; ++t) task.tables.push_back(make_table(fmt::format("t{}", t), 10, 4));
  for (Table& table : task.tables) table.allow = {false, false, false};
  const StopClock over(StopClock::Clock::now());
  EXPECT_THAT(explain_infeasible(task, false, over).what(),
              EndsWith("and no way to divide it among them was found"));
}

}  // namespace
}  // namespace neuroshard
