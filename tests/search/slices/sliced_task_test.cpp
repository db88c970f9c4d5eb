// Slices of rows as tables of their own: there and back, with the same cost.
#include "neuroshard/search/slices/sliced_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_tasks::arbitrary_compute;
using testing_tasks::arbitrary_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::with_row_orders;

/// "a" of 100 rows and 32 columns: 16 columns whole, 16 in slices. "b" is on every device.
ShardingPlan sliced_plan() {
  return {{{0, 0, 8, 0, 0, 40},
           {0, 8, 12, 0},
           {0, 20, 4, 1},
           {0, 0, 8, 1, 40, 60},
           {0, 24, 8, 1, 0, 40},
           {0, 24, 8, 0, 40, 60}},
          {1}};
}

Task two_tables() {
  return one_host_task({make_table("a", 100, 32, 8.0), make_table("b", 50, 16)}, 2, 1 << 20);
}

TEST(SlicedTask, SlicesAreTablesOfTheColumnsThatThePlanHasOfTheirRows) {
  const Simulator simulator = make_simulator(two_tables());
  ShardingPlan plan = sliced_plan();
  ASSERT_THAT(violations(simulator.task(), plan), IsEmpty());
  const SlicedTask sliced(simulator, plan);
  const Task& task = sliced.simulator().task();
  // All rows, and the two slices on either side of these columns.
  ASSERT_EQ(task.tables.size(), 5u);
  EXPECT_EQ(task.tables[0].num_embeddings, 100);
  EXPECT_EQ(task.tables[0].embedding_dim, 16);
  EXPECT_TRUE(task.tables[0].allow.rows);
  EXPECT_EQ(task.tables[1].num_embeddings, 40);
  EXPECT_EQ(task.tables[1].embedding_dim, 8);
  EXPECT_FALSE(task.tables[1].allow.rows);
  EXPECT_EQ(task.tables[2].num_embeddings, 40);
  EXPECT_EQ(task.tables[3].num_embeddings, 60);
  EXPECT_EQ(task.topology.memory_bytes[0], (1 << 20) - 50 * 16 * 4);
  EXPECT_THAT(violations(task, sliced.plan()), IsEmpty());
  EXPECT_THAT(sliced.plan().shards,
              ElementsAre(Shard{0, 0, 12, 0}, Shard{0, 12, 4, 1}, Shard{1, 0, 8, 0},
                          Shard{2, 0, 8, 1}, Shard{3, 0, 8, 1}, Shard{4, 0, 8, 0}));
  sort_shards(plan);
  EXPECT_EQ(sliced.original(sliced.plan()).shards, plan.shards);
}

TEST(SlicedTask, OtherPlansOfTheSlicesAreValidToo) {
  const Simulator simulator = make_simulator(two_tables());
  const SlicedTask sliced(simulator, sliced_plan());
  // The first slice's columns, 0 to 7 and 24 to 31 of the table, on one device: two pieces. Those
  // of all rows cut in rows once more.
  const ShardingPlan other{{{1, 0, 8, 0},
                            {2, 0, 8, 0},
                            {3, 0, 4, 1},
                            {3, 4, 4, 0},
                            {4, 0, 8, 0},
                            {0, 0, 16, 0, 0, 50},
                            {0, 0, 16, 1, 50, 50}},
                           {}};
  EXPECT_THAT(violations(sliced.simulator().task(), other), IsEmpty());
  const ShardingPlan original = sliced.original(other);
  EXPECT_THAT(violations(simulator.task(), original), IsEmpty());
  EXPECT_THAT(original.replicated_tables, ElementsAre(1));
  EXPECT_THAT(original.shards,
              testing::UnorderedElementsAre(Shard{0, 0, 8, 0, 0, 40}, Shard{0, 24, 8, 0, 0, 40},
                                            Shard{0, 0, 4, 1, 40, 60}, Shard{0, 4, 4, 0, 40, 60},
                                            Shard{0, 24, 8, 0, 40, 60}, Shard{0, 8, 16, 0, 0, 50},
                                            Shard{0, 8, 16, 1, 50, 50}));
}

TEST(SlicedTask, PartialSumsAreOfTheSlicesThatShareColumns) {
  const Simulator simulator = make_simulator(two_tables());
  // Of "a" the first 8 columns are in two slices, the next 8 in three, the others whole.
  const ShardingPlan plan{{{0, 0, 16, 0, 0, 50},
                           {0, 0, 8, 1, 50, 50},
                           {0, 8, 8, 1, 50, 25},
                           {0, 8, 8, 0, 75, 25},
                           {0, 16, 16, 1},
                           {1, 0, 16, 0}},
                          {}};
  ASSERT_THAT(violations(simulator.task(), plan), IsEmpty());
  const SlicedTask sliced(simulator, plan);
  ASSERT_EQ(sliced.simulator().task().tables.size(), 6u);
  const double of_two = simulator.partial_bytes_per_column(2.0);
  const double of_three = simulator.partial_bytes_per_column(3.0);
  const auto bytes = [&](int table) {
    return sliced.simulator().partial_bytes_per_column_of(table);
  };
  EXPECT_EQ(bytes(0), 0.0);  // whole
  EXPECT_NEAR(bytes(1), 0.5 * (of_two + of_three), 1e-3);
  EXPECT_EQ(bytes(2), of_three);
  EXPECT_EQ(bytes(3), of_two);
  EXPECT_EQ(bytes(4), of_three);
  EXPECT_EQ(bytes(5), 0.0);
}

/// A random plan: a table whole, in pieces of columns, in slices of rows, or on every device.
ShardingPlan arbitrary_slices_and_copies(const Task& task) {
  const auto device = [&] { return *rc::gen::inRange(0, task.topology.world_size); };
  ShardingPlan plan;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const int number = static_cast<int>(t);
    const Table& table = task.tables[t];
    const std::int64_t dim = table.embedding_dim;
    const bool cuts = can_cut(dim) && *rc::gen::arbitrary<bool>();
    const std::int64_t left = cuts ? 4 * *rc::gen::inRange<std::int64_t>(1, dim / 4) : dim;
    if (*rc::gen::inRange(0, 5) == 0) {
      plan.replicated_tables.push_back(number);
      continue;
    }
    for (const auto& [offset, count] : {std::pair{std::int64_t{0}, left}, {left, dim - left}}) {
      if (count == 0) continue;
      if (table.num_embeddings > 1 && *rc::gen::arbitrary<bool>()) {
        const auto rows = *rc::gen::inRange<std::int64_t>(1, table.num_embeddings);
        plan.shards.push_back({number, offset, count, device(), 0, rows});
        plan.shards.push_back({number, offset, count, device(), rows, table.num_embeddings - rows});
      } else {
        plan.shards.push_back({number, offset, count, device()});
      }
    }
  }
  sort_shards(plan);
  return plan;
}

RC_GTEST_PROP(SlicedTaskProperty, ThereAndBackWithTheSameCost, ()) {
  Task task = *arbitrary_task(1.0);
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  for (std::int64_t& bytes : task.topology.memory_bytes) bytes = std::int64_t{1} << 50;
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  const ShardingPlan plan = arbitrary_slices_and_copies(simulator.task());
  RC_ASSERT(violations(simulator.task(), plan).empty());
  RC_PRE(!plan.shards.empty());
  const SlicedTask sliced(simulator, plan);
  RC_ASSERT(violations(sliced.simulator().task(), sliced.plan()).empty());
  const ShardingPlan back = sliced.original(sliced.plan());
  RC_ASSERT(back.shards == plan.shards);
  RC_ASSERT(back.replicated_tables == plan.replicated_tables);
  // Such that a plan that fits there fits here.
  RC_ASSERT(device_memory(sliced.simulator().task(), sliced.plan()) ==
            device_memory(simulator.task(), {plan.shards, {}}));
  const PlanCost here = simulator.cost(plan);
  const PlanCost there = sliced.simulator().cost(sliced.plan());
  for (std::size_t d = 0; d < here.devices.size(); ++d) {
    RC_ASSERT(std::abs(here.devices[d].total_ms() - there.devices[d].total_ms()) <=
              1e-9 * here.cost_ms);
  }
}

TEST(SlicedTask, OtherWaysOfCuttingRowsAreTablesThatThePlanHasNothingOf) {
  Task task = one_host_task({make_table("a", 100, 32, 8.0), make_table("b", 3, 16, 2.0),
                             make_table("c", 50, 16), make_table("d", 1, 4)},
                            4, 1 << 20);
  task.tables[2].allow.rows = false;
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{
      {{0, 0, 32, 0, 0, 50}, {0, 0, 32, 1, 50, 50}, {1, 0, 16, 0}, {2, 0, 16, 1}, {3, 0, 4, 2}},
      {}};
  const SlicedTask sliced(simulator, plan, 10);
  const Slicings& slicings = sliced.slicings();
  const auto group_of = [&](int table) { return slicings.place_of(table).group; };
  ASSERT_EQ(group_of(0), 0);  // the first slice of "a", the costliest
  EXPECT_EQ(group_of(1), 0);
  ASSERT_EQ(group_of(2), 1);
  EXPECT_EQ(group_of(3), -1);  // "c" keeps its rows together,
  EXPECT_EQ(group_of(4), -1);  // "d" has one
  // The plan's 2, whole, 2/3 and 1/3, in 3, 3/4 and 1/4, 1/2 and 1/4 twice, in 4; "b" has 3 rows
  // and is whole in the plan.
  EXPECT_EQ(slicings.ways(0).size(), 7u);
  EXPECT_EQ(slicings.ways(1).size(), 4u);
  // "a" in three slices: 34, 33 and 33 rows.
  ShardingPlan other = sliced.plan();
  std::erase_if(other.shards, [](const Shard& shard) { return shard.table < 2; });
  for (const int table : slicings.ways(0)[3]) other.shards.push_back({table, 0, 32, 3});
  const ShardingPlan original = sliced.original(other);
  EXPECT_THAT(violations(simulator.task(), original), IsEmpty());
  EXPECT_EQ(original.shards[0], (Shard{0, 0, 32, 3, 0, 34}));
  EXPECT_EQ(original.shards[2], (Shard{0, 0, 32, 3, 67, 33}));
}

}  // namespace
}  // namespace neuroshard
