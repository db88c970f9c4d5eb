// The incremental state of a plan: equal to one built from scratch after any changes and undos.
#include "neuroshard/search/improve/column_assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "neuroshard/search/memory/memory_fit.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;

Transfer arbitrary_transfer(const Task& task, const ColumnAssignment& assignment) {
  std::vector<int> sources;
  for (int d = 0; d < assignment.num_devices(); ++d) {
    if (!assignment.holdings(d).empty()) sources.push_back(d);
  }
  const int from = *rc::gen::elementOf(sources);
  const int to = (from + *rc::gen::inRange(1, assignment.num_devices())) % assignment.num_devices();
  const auto holdings = assignment.holdings(from);
  const auto held = holdings[*rc::gen::inRange<std::size_t>(0, holdings.size())];
  std::int64_t columns = held.num_columns;
  if (can_cut(task.tables[held.table].embedding_dim)) {
    columns =
        *rc::gen::inRange<std::int64_t>(1, columns / kColumnGranularity + 1) * kColumnGranularity;
  }
  return {held.table, columns, from, to};
}

RC_GTEST_PROP(ColumnAssignmentProperty, IsTheSameAsBuiltFromScratchAndUndoneExactly, ()) {
  Task given = task_of_any_tightness();
  if (given.topology.world_size == 1) {  // nowhere to transfer anything
    given.topology.world_size = given.topology.local_world_size = 2;
    given.topology.memory_bytes.push_back(given.topology.memory_bytes.front());
  }
  const Simulator simulator = make_simulator(given, arbitrary_compute());
  const Task& task = simulator.task();
  const MemoryFit fit = fit_memory(task);
  RC_PRE(fit.feasible);
  PieceCatalog catalog(simulator);
  ColumnAssignment assignment(simulator, catalog, fit.plan);
  const double first_cost = assignment.cost().cost_ms;
  const ShardingPlan first_plan = assignment.plan();

  std::vector<Transfer> done;
  const int transfers = *rc::gen::inRange(1, 20);
  for (int i = 0; i < transfers; ++i) {
    done.push_back(arbitrary_transfer(task, assignment));
    assignment.apply(done.back());
    if (*rc::gen::arbitrary<bool>()) (void)assignment.cost();  // now and then
  }
  const ShardingPlan plan = assignment.plan();
  RC_ASSERT(assignment.cost().cost_ms == simulator.cost(plan).cost_ms);
  const std::vector<std::int64_t> memory = device_memory(task, plan);
  for (int d = 0; d < assignment.num_devices(); ++d) {
    RC_ASSERT(assignment.bytes(d) == memory[d]);
    RC_ASSERT(assignment.free_bytes(d) == task.topology.memory_bytes[d] - memory[d]);
  }
  std::reverse(done.begin(), done.end());
  for (const Transfer& transfer : done) assignment.apply(transfer.reversed());
  RC_ASSERT(assignment.cost().cost_ms == first_cost);
  RC_ASSERT(assignment.plan().shards == first_plan.shards);
}

RC_GTEST_PROP(ColumnAssignmentProperty, RollingBackIsExact, ()) {
  Task given = task_of_any_tightness();
  if (given.topology.world_size == 1) {
    given.topology.world_size = given.topology.local_world_size = 2;
    given.topology.memory_bytes.push_back(given.topology.memory_bytes.front());
  }
  const Simulator simulator = make_simulator(given, arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  PieceCatalog catalog(simulator);
  ColumnAssignment assignment(simulator, catalog, fit.plan);
  const int neighbours = *rc::gen::inRange(1, 20);
  for (int i = 0; i < neighbours; ++i) {
    const ShardingPlan before = assignment.plan();
    const bool priced = *rc::gen::arbitrary<bool>();
    const double cost = priced ? assignment.cost().cost_ms : 0.0;
    const Transfer there = arbitrary_transfer(simulator.task(), assignment);
    assignment.remember(there.from, there.to);
    assignment.apply(there);
    if (*rc::gen::arbitrary<bool>()) (void)assignment.floor();
    if (*rc::gen::arbitrary<bool>()) (void)assignment.cost();
    if (*rc::gen::arbitrary<bool>()) continue;  // stays
    assignment.roll_back();
    RC_ASSERT(assignment.plan().shards == before.shards);
    if (priced) RC_ASSERT(assignment.cost().cost_ms == cost);
  }
  const ShardingPlan plan = assignment.plan();
  RC_ASSERT(assignment.cost().cost_ms == simulator.cost(plan).cost_ms);
  const std::vector<std::int64_t> memory = device_memory(simulator.task(), plan);
  for (int d = 0; d < assignment.num_devices(); ++d) RC_ASSERT(assignment.bytes(d) == memory[d]);
}

RC_GTEST_PROP(ColumnAssignmentProperty, FloorWithAPieceIsThatOfTheDeviceThatHasIt, ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  const Task& task = simulator.task();
  const MemoryFit fit = fit_memory(task);
  RC_PRE(fit.feasible);
  const int device = *rc::gen::inRange(0, task.topology.world_size);
  ShardingPlan of_device;  // the other devices have nothing, so that its floor is the plan's
  for (const Shard& shard : fit.plan.shards) {
    if (shard.device == device) of_device.shards.push_back(shard);
  }
  PieceCatalog catalog(simulator);
  ColumnAssignment assignment(simulator, catalog, of_device);
  const double before = assignment.floor().cost_ms;
  const int table = *rc::gen::inRange(0, static_cast<int>(task.tables.size()));
  const std::int64_t columns = task.tables[table].embedding_dim;
  RC_PRE(columns % kColumnGranularity == 0 || assignment.columns_of(table, device) == 0);
  const double with = assignment.floor_with(table, columns, device);
  RC_ASSERT(assignment.floor().cost_ms == before);
  RC_ASSERT(assignment.plan().shards.size() == of_device.shards.size());
  assignment.add(table, columns, device);
  const double after = assignment.floor().cost_ms;
  RC_ASSERT(std::abs(with - after) <= 1e-12 * after);
}

TEST(ColumnAssignment, PiecesOfATableThatMeetAreOne) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 100, 16)}, 2, 1 << 20, Optimizer::rowwise_adagrad));
  PieceCatalog catalog(simulator);
  ColumnAssignment assignment(simulator, catalog, {{{0, 0, 8, 0}, {0, 8, 8, 1}}});
  EXPECT_EQ(assignment.bytes(0) + assignment.bytes(1), 100 * (16 * 4 + 2 * 4));
  assignment.apply({0, 8, 1, 0});
  EXPECT_EQ(assignment.bytes(0), 100 * (16 * 4 + 4));
  EXPECT_EQ(assignment.bytes(1), 0);
  EXPECT_TRUE(assignment.holdings(1).empty());
  ASSERT_EQ(assignment.holdings(0).size(), 1u);
  EXPECT_EQ(assignment.holdings(0)[0], (Piece{0, 16}));
  EXPECT_EQ(assignment.plan().shards, (std::vector<Shard>{{0, 0, 16, 0}}));
}

}  // namespace
}  // namespace neuroshard
