// The simulator: cost(plan) by hand, lags, and what it must not depend on.
#include "neuroshard/cost/simulator.h"
#include "neuroshard/core/interconnect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/communication/link_schedule.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/workload/reuse/access_by_row.h"
#include "tests/cost/analytic_simulator.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing_tasks::analytic;
using testing_tasks::arbitrary_plan;
using testing_tasks::arbitrary_task;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// One column costs 1 ms, in fused operators of which each is 10 % cheaper per further piece.
class FusingCompute : public ComputeCostModel {
 public:
  std::string name() const override { return "fusing"; }
  std::size_t state_size() const override { return 2; }
  void encode(const TableStatistics&, std::int64_t num_columns, const OperatorSettings&,
              std::span<double> contribution) const override {
    contribution[0] = 1.0;
    contribution[1] = static_cast<double>(num_columns);
  }
  void costs_with(std::span<const double> states, std::span<const double> piece,
                  std::span<double> costs) const override {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const double pieces = states[2 * i] + (piece.empty() ? 0.0 : piece[0]);
      const double columns = states[2 * i + 1] + (piece.empty() ? 0.0 : piece[1]);
      costs[i] = pieces > 0.0 ? columns * std::pow(0.9, pieces - 1.0) : 0.0;
    }
  }
};

/// Given times; records the starts of each call.
class ScriptedCommunication : public CommunicationCostModel {
 public:
  ScriptedCommunication(std::vector<double> backward_ms, std::vector<double> forward_ms)
      : backward_ms_(std::move(backward_ms)), forward_ms_(std::move(forward_ms)) {}
  std::string name() const override { return "scripted"; }
  void forward(const Topology&, std::int64_t, std::span<const double> columns,
               std::span<const double> start_ms, std::span<double> forward_ms) const override {
    seen_columns.assign(columns.begin(), columns.end());
    seen_start_ms.assign(start_ms.begin(), start_ms.end());
    std::copy(forward_ms_.begin(), forward_ms_.end(), forward_ms.begin());
  }
  void backward(const Topology&, std::int64_t, std::span<const double>,
                std::span<double> backward_ms) const override {
    std::copy(backward_ms_.begin(), backward_ms_.end(), backward_ms.begin());
  }
  double all_reduce_ms(const Topology&, double bytes) const override { return bytes * 1e-3; }
  std::vector<std::string> outside_range(const Task&) const override { return {}; }

  mutable std::vector<double> seen_columns;
  mutable std::vector<double> seen_start_ms;

 private:
  std::vector<double> backward_ms_;
  std::vector<double> forward_ms_;
};

Task two_tables(int world_size) {
  Task task;
  task.batch_size = 64;
  task.optimizer = Optimizer::rowwise_adagrad;
  task.tables = {make_table("a", 10, 8), make_table("b", 100, 4)};
  task.topology = make_topology(world_size, world_size, 1 << 20);
  return task;
}

TEST(Simulator, LagsBehindTheEarliestGoIntoForwardAndTheSlowestDeviceIsTheCost) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{1.0, 3.0}, std::vector{2.0, 4.0});
  const Simulator simulator(two_tables(2), std::make_shared<FusingCompute>(), communication);

  const PlanCost cost = simulator.combine(std::vector{5.0, 2.0}, std::vector{8.0, 4.0});

  EXPECT_THAT(communication->seen_start_ms, testing::ElementsAre(1.0, 0.0));  // 6 and 5
  EXPECT_THAT(communication->seen_columns, testing::ElementsAre(8.0, 4.0));
  EXPECT_EQ(cost.cost_ms, 9.0);  // 8 and 9
  EXPECT_EQ(cost.devices[0].total_ms(), 8.0);
  EXPECT_EQ(cost.devices[1].compute_ms, 2.0);
  EXPECT_EQ(cost.devices[1].backward_comm_ms, 3.0);
  EXPECT_EQ(cost.devices[1].forward_comm_ms, 4.0);
  EXPECT_EQ(cost.devices[0].num_columns, 8);
  EXPECT_EQ(cost.devices[0].memory_bytes, 0);
}

TEST(Simulator, EveryFeatureOfATableHasAPooledOutputOfItsOwn) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{0.0, 0.0}, std::vector{0.0, 0.0});
  Task task = two_tables(2);
  task.tables[0].num_features = 3;
  const Simulator simulator(task, std::make_shared<FusingCompute>(), communication);

  const PlanCost cost = simulator.cost({{{0, 0, 4, 0}, {0, 4, 4, 1}, {1, 0, 4, 1}}});

  EXPECT_THAT(communication->seen_columns, testing::ElementsAre(12.0, 16.0));
  EXPECT_EQ(cost.devices[0].num_columns, 12);
  EXPECT_EQ(cost.devices[0].memory_bytes, 10 * (4 * 4 + 4));  // its rows are there once
}

TEST(Simulator, PricesEachDevicesPiecesAsOneOperator) {
  const auto communication = std::make_shared<ScriptedCommunication>(std::vector{0.0, 0.0, 0.0},
                                                                     std::vector{0.0, 0.0, 0.0});
  const Simulator simulator(two_tables(3), std::make_shared<FusingCompute>(), communication);
  const ShardingPlan plan{{{0, 0, 4, 0}, {0, 4, 4, 1}, {1, 0, 4, 1}}};

  const PlanCost cost = simulator.cost(plan);

  EXPECT_DOUBLE_EQ(cost.devices[0].compute_ms, 4.0);
  EXPECT_DOUBLE_EQ(cost.devices[1].compute_ms, 8.0 * 0.9);
  EXPECT_EQ(cost.devices[2].compute_ms, 0.0);
  EXPECT_EQ(cost.devices[2].num_columns, 0);
  EXPECT_EQ(cost.devices[1].num_columns, 8);
  EXPECT_EQ(cost.devices[0].memory_bytes, 10 * (4 * 4 + 4));
  EXPECT_EQ(cost.devices[1].memory_bytes, 10 * (4 * 4 + 4) + 100 * (4 * 4 + 4));
  EXPECT_DOUBLE_EQ(cost.cost_ms, 8.0 * 0.9);
}

TEST(Simulator, TakesMeasuredComputationCosts) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{1.0, 1.0}, std::vector{0.5, 0.25});
  const Simulator simulator(two_tables(2), std::make_shared<FusingCompute>(), communication);

  const PlanCost cost =
      simulator.cost({{{0, 0, 8, 0}, {1, 0, 4, 1}}}, std::vector<double>{10.0, 20.0});

  EXPECT_EQ(cost.devices[0].total_ms(), 11.5);
  EXPECT_EQ(cost.cost_ms, 21.25);
  EXPECT_EQ(cost.devices[1].memory_bytes, 100 * 20);
}

TEST(Simulator, SlicesSendAllTheirColumnsAndHaveTheirShareOfTheLookups) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{0.0, 0.0}, std::vector{0.0, 0.0});
  const Simulator simulator(two_tables(2), std::make_shared<FusingCompute>(), communication);
  const PlanCost cost = simulator.cost({{{0, 0, 8, 0}, {1, 0, 4, 0, 0, 25}, {1, 0, 4, 1, 25, 75}}});
  EXPECT_EQ(cost.devices[0].num_columns, 12);
  EXPECT_EQ(cost.devices[1].num_columns, 4);
  EXPECT_EQ(cost.devices[0].memory_bytes, 10 * (8 * 4 + 4) + 25 * (4 * 4 + 4));
  EXPECT_EQ(cost.devices[1].memory_bytes, 75 * (4 * 4 + 4));

  // Twice the batch in a slice of half the rows: as many lookups, in half as many rows.
  Task task = two_tables(2);
  const PlanCost whole = analytic(task).cost({{{0, 0, 8, 0}, {1, 0, 4, 1}}});
  const PlanCost halves =
      analytic(task).cost({{{0, 0, 8, 0}, {1, 0, 4, 1, 0, 50}, {1, 0, 4, 0, 50, 50}}});
  EXPECT_LT(halves.devices[1].compute_ms, whole.devices[1].compute_ms);
  EXPECT_GT(halves.devices[0].compute_ms, whole.devices[0].compute_ms);
}

TEST(Simulator, PartialSumsAreAddedUpAtTheEndOfTheForwardCommunication) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{1.0, 2.0}, std::vector{0.5, 0.25});
  const Simulator simulator(two_tables(2), std::make_shared<FusingCompute>(), communication);
  const ShardingPlan plan{{{0, 0, 8, 0}, {1, 0, 4, 0, 0, 25}, {1, 0, 4, 1, 25, 75}}};
  // Two parts and their sum, of 4 columns in fp32 and 32 samples, at the rate of a host's memory.
  const double sums_ms = 3 * 4 * 4 * 32 / (kHostMemoryGbPerS * 1e6);
  EXPECT_DOUBLE_EQ(simulator.partial_sums_ms(plan), sums_ms);
  const PlanCost cost = simulator.cost(plan);
  EXPECT_DOUBLE_EQ(cost.devices[0].forward_comm_ms, 0.5 + sums_ms);
  EXPECT_DOUBLE_EQ(cost.devices[1].forward_comm_ms, 0.25 + sums_ms);
  EXPECT_THAT(communication->seen_start_ms, testing::ElementsAre(testing::DoubleEq(5.8), 0.0));

  // Not a bit of a plan without slices changes.
  const ShardingPlan whole{{{0, 0, 8, 0}, {1, 0, 4, 1}}};
  EXPECT_EQ(simulator.partial_sums_ms(whole), 0.0);
  EXPECT_EQ(simulator.cost(whole).devices[1].forward_comm_ms, 0.25);
}

TEST(Simulator, CopiesAreUsedAsTheWholeBatchsHistogramSays) {
  Task task = two_tables(2);
  task.batch_size = 4096;
  // In the whole batch every row is hit some 40 times, in half of it some 20 times.
  ReuseHistogram histogram{};
  histogram[6] = 1.0;
  task.tables[1].reuse_histogram = histogram;
  Task uniform = task;
  uniform.tables[1].reuse_histogram.reset();
  const double by_histogram = analytic(task).replica_cost(std::vector{1}).compute_ms;
  EXPECT_NEAR(by_histogram, analytic(uniform).replica_cost(std::vector{1}).compute_ms,
              0.2 * by_histogram);
}

TEST(Simulator, ReplicatedTablesCostEveryDeviceItsShareOfTheBatchAndTheAllReduce) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{1.0, 2.0}, std::vector{0.5, 0.25});
  const Simulator simulator(two_tables(2), std::make_shared<FusingCompute>(), communication);
  const PlanCost cost = simulator.cost({{{0, 0, 8, 0}}, {1}});
  // 100 rows of 4 columns in fp32, at a microsecond a byte.
  EXPECT_DOUBLE_EQ(cost.devices[0].all_reduce_ms, 1.6);
  EXPECT_DOUBLE_EQ(cost.devices[1].all_reduce_ms, 1.6);
  EXPECT_EQ(cost.devices[0].compute_ms, 12.0);  // two operators
  EXPECT_EQ(cost.devices[1].compute_ms, 4.0);
  EXPECT_EQ(cost.devices[0].num_columns, 8);
  EXPECT_EQ(cost.devices[1].num_columns, 0);
  EXPECT_DOUBLE_EQ(cost.devices[0].total_ms(), 12.0 + 1.6 + 1.0 + 0.5);
  EXPECT_THAT(communication->seen_start_ms, testing::ElementsAre(7.0, 0.0));
  EXPECT_EQ(cost.devices[1].memory_bytes, 100 * (4 * 4 + 4));

  // Half of the batch each: half the lookups.
  const Task task = two_tables(2);
  const double alone = analytic(task).cost({{{0, 0, 8, 0}, {1, 0, 4, 1}}}).devices[1].compute_ms;
  const double copy = analytic(task).replica_cost(std::vector{1}).compute_ms;
  EXPECT_LT(copy, alone);
  EXPECT_EQ(analytic(task).replica_cost({}).compute_ms, 0.0);
  EXPECT_EQ(replica_batch_size(task), 32);
}

/// Two members, of which the second finds everything half as expensive again.
class DividedCompute final : public FusingCompute {
 public:
  int num_members() const override { return 2; }
  void member_costs(std::span<const double> states, std::span<const double> piece,
                    std::span<double> costs) const override {
    std::vector<double> first(costs.size() / 2);
    costs_with(states, piece, first);
    for (std::size_t i = 0; i < first.size(); ++i) {
      costs[2 * i] = first[i];
      costs[2 * i + 1] = 1.5 * first[i];
    }
  }
};

TEST(Simulator, SaysHowFarTheMembersAreApart) {
  const auto communication =
      std::make_shared<ScriptedCommunication>(std::vector{0.0, 0.0}, std::vector{0.0, 0.0});
  const ShardingPlan plan{{{0, 0, 8, 1}}};
  const std::vector<MemberRange> ranges =
      Simulator(two_tables(2), std::make_shared<DividedCompute>(), communication)
          .member_ranges(plan);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].spread(), 0.0);  // no pieces
  EXPECT_EQ(ranges[1].least_ms, 8.0);
  EXPECT_EQ(ranges[1].most_ms, 12.0);
  EXPECT_DOUBLE_EQ(ranges[1].spread(), 0.4);
  const std::vector<MemberRange> single =
      Simulator(two_tables(2), std::make_shared<FusingCompute>(), communication)
          .member_ranges(plan);
  EXPECT_EQ(single[1].spread(), 0.0);
}

TEST(Simulator, RefusesAnInvalidTaskAndMissingModels) {
  const auto compute = std::make_shared<FusingCompute>();
  const auto communication = std::make_shared<AnalyticCommunicationModel>(interconnects()[0]);
  Task task = two_tables(2);
  EXPECT_THROW(Simulator(task, nullptr, communication), InputError);
  EXPECT_THROW(Simulator(task, compute, nullptr), InputError);
  task.tables[1].name = "a";
  EXPECT_THROW(Simulator(task, compute, communication), InputError);
}

TEST(Simulator, ThreadsMayShareIt) {
  const Simulator simulator = analytic(two_tables(2));
  const double expected = simulator.cost({{{0, 0, 8, 0}, {1, 0, 4, 1}}}).cost_ms;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        EXPECT_EQ(simulator.cost({{{0, 0, 8, 0}, {1, 0, 4, 1}}}).cost_ms, expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

RC_GTEST_PROP(SimulatorProperty, CostDoesNotDependOnTheOrderOfShards, ()) {
  const Task task = *arbitrary_task(1.0);
  ShardingPlan plan = *arbitrary_plan(task);
  const Simulator simulator = analytic(task);
  const PlanCost before = simulator.cost(plan);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  random.shuffle(plan.shards);
  const PlanCost after = simulator.cost(plan);
  RC_ASSERT(before.cost_ms == after.cost_ms);
  for (std::size_t d = 0; d < before.devices.size(); ++d) {
    RC_ASSERT(before.devices[d].total_ms() == after.devices[d].total_ms());
  }
}

RC_GTEST_PROP(SimulatorProperty, CostDoesNotDependOnTheOrderOfTables, ()) {
  const Task task = *arbitrary_task(1.0);
  const ShardingPlan plan = *arbitrary_plan(task);
  std::vector<int> order(task.tables.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  random.shuffle(order);

  Task reordered = task;
  std::vector<int> new_index(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    reordered.tables[i] = task.tables[order[i]];
    new_index[order[i]] = static_cast<int>(i);
  }
  ShardingPlan same = plan;
  for (Shard& shard : same.shards) shard.table = new_index[shard.table];
  RC_ASSERT(analytic(task).cost(plan).cost_ms == analytic(reordered).cost(same).cost_ms);
}

RC_GTEST_PROP(SimulatorProperty, CostDoesNotDependOnTheOrderOfEqualDevices, ()) {
  Task task = *arbitrary_task(1.0);
  task.topology.local_world_size = task.topology.world_size;  // one host: devices are equal
  const ShardingPlan plan = *arbitrary_plan(task);
  std::vector<int> device(task.topology.world_size);
  std::iota(device.begin(), device.end(), 0);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  random.shuffle(device);

  ShardingPlan same = plan;
  for (Shard& shard : same.shards) shard.device = device[shard.device];
  const Simulator simulator = analytic(task);
  RC_ASSERT(simulator.cost(plan).cost_ms == simulator.cost(same).cost_ms);
}

TEST(Simulator, SlicesByFrequencyHaveTheLookupsOfTheirRows) {
  Task task;
  task.batch_size = 4096;
  task.tables = {make_table("a", 1'000'000, 64, 20.0)};
  task.tables[0].index_distribution = IndexDistribution{.zipf_exponent = 1.2};
  task.topology = make_topology(2, 2, std::int64_t{1} << 34);
  const ShardingPlan halves{{{0, 0, 64, 0, 0, 500'000}, {0, 0, 64, 1, 500'000, 500'000}}};
  const PlanCost hashed = analytic(task).cost(halves);
  EXPECT_EQ(hashed.devices[0].compute_ms, hashed.devices[1].compute_ms);
  task.tables[0].row_order = RowOrder::by_frequency;
  const Simulator simulator = analytic(task);
  const PlanCost ordered = simulator.cost(halves);
  EXPECT_GT(ordered.devices[0].compute_ms, hashed.devices[0].compute_ms);
  EXPECT_LT(ordered.devices[1].compute_ms, hashed.devices[1].compute_ms);
  const std::vector<std::int64_t> ends = simulator.slice_ends(0, 2);
  const ShardingPlan equal{
      {{0, 0, 64, 0, 0, ends[1]}, {0, 0, 64, 1, ends[1], 1'000'000 - ends[1]}}};
  EXPECT_LT(simulator.cost(equal).devices[0].compute_ms, ordered.devices[0].compute_ms);
  // Whole tables cost the same whatever their order.
  const ShardingPlan whole{{{0, 0, 64, 0}}};
  task.tables[0].row_order = RowOrder::hashed;
  EXPECT_EQ(simulator.cost(whole).cost_ms, analytic(task).cost(whole).cost_ms);
}

TEST(Simulator, SlicesOfHashedIdsAreOfEqualRows) {
  Task task;
  task.batch_size = 64;
  task.tables = {make_table("a", 10, 16)};
  task.topology = make_topology(4, 4, 1 << 20);
  EXPECT_EQ(analytic(task).slice_ends(0, 4), (std::vector<std::int64_t>{0, 3, 6, 8, 10}));
  task.tables[0].min_shard_rows = 2;
  EXPECT_EQ(analytic(task).slice_ends(0, 4), (std::vector<std::int64_t>{0, 3, 6, 8, 10}));
}

TEST(Simulator, SlicesOfOrderedRowsCostAsMuchAsEachOther) {
  Task task;
  task.batch_size = 16'384;
  task.optimizer = Optimizer::sgd;
  task.tables = {make_table("a", 1'000'000, 64, 100.0)};
  Table& table = task.tables.front();
  table.index_distribution = IndexDistribution{.zipf_exponent = 1.05};
  table.row_order = RowOrder::by_frequency;
  task.topology = make_topology(4, 4, std::int64_t{1} << 34);
  const Simulator simulator = analytic(task);
  const auto plan_of = [](const std::vector<std::int64_t>& ends) {
    ShardingPlan plan;
    for (int d = 0; d < 4; ++d) {
      plan.shards.push_back({0, 0, 64, d, ends[d], ends[d + 1] - ends[d]});
    }
    return plan;
  };
  const ShardingPlan plan = plan_of(simulator.slice_ends(0, 4));
  EXPECT_LT(plan.shards.front().num_rows, 50'000);
  const PlanCost cost = simulator.cost(plan);
  for (int d = 1; d < 4; ++d) {
    EXPECT_NEAR(cost.devices[d].compute_ms / cost.devices[0].compute_ms, 1.0, 0.25) << d;
  }
  // Lookups of rows that are often hit cost less, so equal shares of them do not cost the same.
  const auto share = [&](int d) {
    return simulator.statistics_of(piece_of(task, plan.shards[d])).pooling_factor;
  };
  EXPECT_GT(share(0), share(3));
  const AccessByRow accesses(table, task.batch_size);
  const ShardingPlan equal_shares = plan_of(accesses.hits().equal_ends(4, 1, 1'000'000));
  EXPECT_LT(cost.cost_ms, 0.9 * simulator.cost(equal_shares).cost_ms);

  // No slice has more rows than the largest device holds.
  task.topology = make_topology(4, 4, std::int64_t{300'000} * 64 * 4);
  const std::vector<std::int64_t> fitting = analytic(task).slice_ends(0, 4);
  EXPECT_EQ(fitting[3], 700'000);
  EXPECT_GE(fitting[2], 400'000);
  table.min_shard_rows = 100'000;
  EXPECT_EQ(analytic(task).slice_ends(0, 4)[1], 100'000);
}

RC_GTEST_PROP(SimulatorProperty, CostIsTheLargestTotalAndNoLessThanAnyPart, ()) {
  const Task task = *arbitrary_task(1.0);
  const PlanCost cost = analytic(task).cost(*arbitrary_plan(task));
  double largest = 0.0;
  for (const DeviceCost& device : cost.devices) {
    RC_ASSERT(device.compute_ms >= 0.0 && device.forward_comm_ms >= 0.0 &&
              device.backward_comm_ms >= 0.0);
    largest = std::max(largest, device.total_ms());
  }
  RC_ASSERT(cost.cost_ms == largest);
}

RC_GTEST_PROP(StateGridProperty, SumsAreExactInAnyOrder, ()) {
  auto values = *rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange<std::int64_t>(-1'000'000'000, 1'000'000'000),
                   [](std::int64_t i) { return static_cast<double>(i) / 7919.0; }));
  round_to_grid(values, kStateGrid);
  const double forwards = std::accumulate(values.begin(), values.end(), 0.0);
  const double backwards = std::accumulate(values.rbegin(), values.rend(), 0.0);
  RC_ASSERT(forwards == backwards);
  for (const double value : values) RC_ASSERT((forwards + value) - value == forwards);
}

/// Every device with pieces costs `ms`.
class ConstantCompute : public FusingCompute {
 public:
  explicit ConstantCompute(double ms) : ms_(ms) {}
  std::string name() const override { return "constant"; }
  void costs_with(std::span<const double>, std::span<const double>,
                  std::span<double> costs) const override {
    std::fill(costs.begin(), costs.end(), ms_);
  }

 private:
  double ms_;
};

TEST(Simulator, CostsThatAreNoneAreRefusedByTheirModel) {
  Task task;
  task.batch_size = 64;
  task.tables = {make_table("a", 100, 16)};
  // Four devices on one card: their schedule waits for one another.
  task.topology = make_topology(8, 4, 1'000'000);
  const auto communication =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("pcie4"));
  const ShardingPlan plan{{{0, 0, 16, 0}}};
  for (const auto& [ms, text] : {std::pair{std::numeric_limits<double>::quiet_NaN(), "nan"},
                                 {std::numeric_limits<double>::infinity(), "inf"},
                                 {-1.0, "-1"}}) {
    const Simulator simulator(task, std::make_shared<ConstantCompute>(ms), communication);
    const std::string expected = ": expected 0 ms, or between 1e-30 and 1e30 ms, got ";
    EXPECT_EQ(input_error([&] { (void)simulator.cost(plan); }),
              "constant: cost of device 0's computation" + expected + text);
    EXPECT_EQ(input_error([&] { (void)simulator.member_ranges(plan); }),
              "constant: cost of a device by one of its networks" + expected + text);
  }
}

TEST(LinkSchedule, EndsWhateverItIsGiven) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  const Topology topology = make_topology(8, 4);
  LinkSchedule schedule(find_interconnect("pcie4"), topology, 64);
  std::vector<double> ends(8);
  for (const double odd : {kNan, kInfinity, -kInfinity, kLargest, -kLargest, kSmallest}) {
    for (const double other : {0.0, 16.0, odd}) {
      std::vector<double> columns(8, other);
      std::vector<double> starts(8, 0.0);
      columns[2] = odd;
      schedule.ends(columns, starts, ends);
      EXPECT_EQ(std::isfinite(odd), !std::isnan(ends[0])) << odd;
      starts[3] = odd;
      schedule.ends(columns, starts, ends);
      std::fill(columns.begin(), columns.end(), 16.0);
      schedule.ends(columns, starts, ends);
      EXPECT_EQ(std::isfinite(odd), !std::isnan(ends[0])) << odd;
    }
  }
}

/// That of an operator with one piece (analytic_compute.cpp): 0.05 and 0.001 ms.
TEST(Simulator, TablesThatAreHardlyEverLookedUpHaveACost) {
  for (const double zipf_exponent : {0.0, 1.1}) {
    Task task;
    task.batch_size = 1;
    task.tables = {make_table("a", kMaxEmbeddings, 16, std::numeric_limits<double>::denorm_min())};
    task.tables[0].index_distribution = IndexDistribution{.zipf_exponent = zipf_exponent};
    task.topology = make_topology(1, 1, 1);
    const Simulator simulator(
        task, std::make_shared<AnalyticComputeModel>(find_compute_hardware("a100-40gb")),
        std::make_shared<AnalyticCommunicationModel>(find_interconnect("pcie4")));
    EXPECT_NEAR(simulator.cost({{{0, 0, 16, 0}}}).cost_ms, 0.051, 1e-6);
  }
}

}  // namespace
}  // namespace neuroshard
