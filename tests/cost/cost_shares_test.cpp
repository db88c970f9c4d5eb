// Shares of a set's cost: that they add up to it where devices are typical, and that they are costs
// whatever the task.
#include "neuroshard/cost/cost_shares.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <memory>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "tests/cost/analytic_simulator.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_tasks::analytic;
using testing_tasks::arbitrary_table;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// Four devices, two equal tables for each.
Task equal_tables() {
  Task task;
  task.batch_size = 4096;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    task.tables.push_back(make_table(name, 100'000, 64, 5.0));
  }
  task.topology = make_topology(4, 4, std::int64_t{1} << 40);
  return task;
}

Piece whole(const Task& task, int table) { return {table, task.tables[table].embedding_dim}; }

TEST(CostShares, OfTypicalDevicesAddUpToTheirCosts) {
  const Task task = equal_tables();
  const Simulator simulator = analytic(task);
  ShardingPlan plan;
  for (int t = 0; t < 8; ++t) plan.shards.push_back({t, 0, 64, t / 2});

  const PlanCost cost = simulator.cost(plan);
  const CostShare share = CostShares(simulator).of(whole(task, 3), 1);

  // The time of starting the operator is in the shares too.
  EXPECT_NEAR(2.0 * share.compute_ms, cost.devices[1].compute_ms, 1e-9);
  EXPECT_NEAR(2.0 * share.forward_comm_ms, cost.devices[1].forward_comm_ms, 1e-9);
  EXPECT_NEAR(2.0 * share.backward_comm_ms, cost.devices[1].backward_comm_ms, 1e-9);
  EXPECT_NEAR(2.0 * share.total_ms(), cost.cost_ms, 1e-9);
}

TEST(CostShares, OfATableThatIsAWholeDeviceIsWhatItCostsAlone) {
  Task task = equal_tables();
  task.tables.resize(1);
  const Simulator simulator = analytic(task);
  const ShardingPlan plan{{{0, 0, 64, 0}}};

  const double alone_ms = simulator.cost(plan).devices[0].compute_ms;
  EXPECT_NEAR(CostShares(simulator).of(whole(task, 0), 1).compute_ms, alone_ms, 1e-9);
}

TEST(CostShares, OfSlicesHaveWhatDevicesTakeToAddUpPartialSums) {
  const Task task = equal_tables();
  const Simulator simulator = analytic(task);
  ShardingPlan plan;
  for (int t = 0; t < 8; ++t) {
    for (int d = 0; d < 4; ++d) plan.shards.push_back({t, 0, 64, d, d * 25'000, 25'000});
  }
  const CostShares shares(simulator);
  Piece slice = whole(task, 0);
  slice.row_share = 0.25;

  const double added_ms =
      8.0 * (shares.of(slice, 4).forward_comm_ms - shares.of(slice, 1).forward_comm_ms);
  EXPECT_NEAR(added_ms, simulator.partial_sums_ms(plan), 1e-9);
  EXPECT_LT(shares.of(slice, 4).compute_ms, shares.of(whole(task, 0), 1).compute_ms);
}

TEST(CostShares, OfCopiesHaveTheAllReduceWithoutItsLatency) {
  const Task task = equal_tables();
  const Simulator simulator = analytic(task);
  const CostShares shares(simulator);
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};

  const Simulator::ReplicaCost cost = simulator.replica_cost(all);
  EXPECT_NEAR(8.0 * shares.of_copy(5).compute_ms, cost.compute_ms, 1e-9);
  EXPECT_LT(8.0 * shares.of_copy(5).backward_comm_ms, cost.all_reduce_ms);
  EXPECT_NEAR(8.0 * shares.of_copy(5).backward_comm_ms, cost.all_reduce_ms,
              0.1 * cost.all_reduce_ms);
  EXPECT_EQ(shares.of_copy(5).forward_comm_ms, 0.0);
}

RC_GTEST_PROP(CostShares, AreCostsAndWholeTablesAddUpToTypicalDevices, ()) {
  Task task;
  task.batch_size = *rc::gen::element<std::int64_t>(1, 64, 4096);
  task.optimizer = *rc::gen::element(Optimizer::sgd, Optimizer::rowwise_adagrad);
  task.tables = *rc::gen::nonEmpty(rc::gen::container<std::vector<Table>>(arbitrary_table()));
  for (std::size_t t = 0; t < task.tables.size(); ++t) task.tables[t].name = std::to_string(t);
  const int world_size = *rc::gen::element(1, 2, 4, 8);
  task.topology = make_topology(world_size, world_size, std::int64_t{1} << 40);
  const Simulator simulator = analytic(task);
  const CostShares shares(simulator);

  double sum_ms = 0.0;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const CostShare share = shares.of(whole(task, static_cast<int>(t)), 1);
    RC_ASSERT(share.compute_ms > 0.0 && std::isfinite(share.total_ms()));
    RC_ASSERT(share.forward_comm_ms >= 0.0 && share.backward_comm_ms >= 0.0);
    const CostShare of_copy = shares.of_copy(static_cast<int>(t));
    RC_ASSERT(of_copy.compute_ms > 0.0 && std::isfinite(of_copy.total_ms()));
    sum_ms += share.compute_ms;
  }
  // One piece after another, a device has all of its cost at least once.
  ShardingPlan plan;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    plan.shards.push_back({static_cast<int>(t), 0, task.tables[t].embedding_dim, 0});
  }
  RC_ASSERT(sum_ms >= simulator.cost(plan).devices[0].compute_ms * (1.0 - 1e-9));
}

}  // namespace
}  // namespace neuroshard
