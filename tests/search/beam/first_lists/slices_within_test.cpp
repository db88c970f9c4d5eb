// The fewest slices of rows that fit, by trying every number.
#include "neuroshard/search/beam/first_lists/slices_within.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "neuroshard/search/slices/row_slices.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

Table ordered_table(std::int64_t rows, double exponent) {
  Table table = make_table("a", rows, 16, 20.0);
  table.index_distribution = IndexDistribution{.zipf_exponent = exponent};
  table.row_order = RowOrder::by_frequency;
  return table;
}

std::int64_t largest_bytes(const Simulator& simulator, int count) {
  const Task& task = simulator.task();
  const std::vector<std::int64_t> ends = simulator.slice_ends(0, count);
  std::int64_t rows = 0;
  for (int i = 0; i < count; ++i) rows = std::max(rows, ends[i + 1] - ends[i]);
  return shard_bytes(task.tables[0], 16, task.optimizer, rows);
}

/// The fewest that are small enough, or else the most that may be.
int tried_in_turn(const Simulator& simulator, std::int64_t most_bytes) {
  const Task& task = simulator.task();
  int count = 1;
  while (largest_bytes(simulator, count) > most_bytes && can_slice(task, task.tables[0], count + 1))
    ++count;
  return count;
}

TEST(SlicesWithin, AreTheFewestThatAreSmallEnough) {
  for (const Table& table : {make_table("a", 100'000, 16), ordered_table(100'000, 0.8),
                             ordered_table(100'000, 1.1), ordered_table(40, 1.1)}) {
    const Simulator simulator = make_simulator(one_host_task({table}, 256, 1));
    const std::int64_t whole = largest_bytes(simulator, 1);
    for (const std::int64_t parts : {1, 2, 3, 7, 20, 60}) {
      const std::vector<int> found = slices_within(simulator, whole / parts);
      ASSERT_EQ(found.size(), 1u);
      const int expected = tried_in_turn(simulator, whole / parts);
      if (expected < parts + 32) {
        EXPECT_EQ(found[0], expected) << parts << " parts of " << table.num_embeddings;
      } else {
        // Sizes do not fall with each slice more; but it is enough, and hardly more than that.
        EXPECT_GE(found[0], expected);
        EXPECT_LE(found[0], expected + 3);
        EXPECT_TRUE(found[0] == 256 || largest_bytes(simulator, found[0]) <= whole / parts);
      }
    }
  }
}

TEST(SlicesWithin, MayNotBeMoreThanTheTableAllows) {
  Table table = ordered_table(100'000, 1.1);
  table.min_shard_rows = 10'000;
  EXPECT_EQ(slices_within(make_simulator(one_host_task({table}, 256, 1)), 1)[0], 10);
  table.allow.rows = false;
  EXPECT_EQ(slices_within(make_simulator(one_host_task({table}, 256, 1)), 1)[0], 1);
}

TEST(SlicesWithin, TheClockStopsThem) {
  const Simulator simulator = make_simulator(one_host_task({ordered_table(100'000, 1.1)}, 256, 1));
  EXPECT_THROW((void)slices_within(simulator, 1'000'000, StopClock(StopClock::Clock::time_point{})),
               TimeIsOver);
}

}  // namespace
}  // namespace neuroshard
