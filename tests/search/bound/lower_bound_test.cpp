// The lower bound: below every plan, and close to the best where that is known.
#include "neuroshard/search/bound/lower_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/error.h"
#include "neuroshard/search/bound/bound_pieces.h"
#include "neuroshard/search/improve/column_assignment.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "tests/search/arbitrary_simulator.h"
#include "tests/search/flat_partial_sums.h"

namespace neuroshard {
namespace {

using testing_networks::random_model;
using testing_tasks::arbitrary_compute;
using testing_tasks::arbitrary_task;
using testing_tasks::conditioned_task;
using testing_tasks::FlatPartialSums;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::make_topology;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;
using testing_tasks::with_conditions;
using testing_tasks::with_pins;
using testing_tasks::with_row_orders;

RC_GTEST_PROP(LowerBoundProperty, NoPlannerIsPredictedToDoBetter, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const double bound = lower_bound_ms(simulator, kColumnsAlone);
  PlannerOptions options;
  options.cuts = kColumnsAlone;
  for (const auto& planner : make_planners()) {
    try {
      RC_ASSERT(planner->plan(simulator, options).predicted.cost_ms >= bound);
    } catch (const InfeasibleError&) {
    }
  }
}

/// A task in whose memory everything has room, so that it makes no slices of other sizes necessary:
/// with row orders, conditions and pins, or without.
Task task_with_room() {
  Task task = *arbitrary_task(10.0);
  const int devices = *rc::gen::element(2, 5, 10, 24);
  task.topology = make_topology(devices, devices, std::int64_t{1} << 40);
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = with_conditions(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = with_pins(std::move(task));
  return task;
}

/// Of plans with some of the cuts, or all. `above`: relative to a plan's cost, which no bound is
/// above by more.
void expect_no_planner_below(const Task& task, double above) {
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  PlannerOptions options;
  options.steps = 200;
  if (*rc::gen::arbitrary<bool>()) {
    options.cuts = {*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                    *rc::gen::arbitrary<bool>()};
  }
  const double bound = lower_bound_ms(simulator, options.cuts);
  for (const auto& planner : make_planners()) {
    const double cost_ms = planner->plan(simulator, options).predicted.cost_ms;
    RC_ASSERT(cost_ms * (1.0 + above) >= bound);
    // Tables whose all-reduce alone costs more than a known plan are in no better one as copies.
    RC_ASSERT(cost_ms * (1.0 + above) >= lower_bound_ms(simulator, options.cuts, 2.0 * cost_ms));
  }
}

/// Rows that every number of slices here divides: nothing is rounded.
RC_GTEST_PROP(LowerBoundProperty, NoPlannerOfAllCutsIsPredictedToDoBetter, ()) {
  Task task = task_with_room();
  for (Table& table : task.tables) {
    table.num_embeddings = std::max<std::int64_t>(table.num_embeddings / 5040, 1) * 5040;
  }
  expect_no_planner_below(task, 0.0);
}

/// Slices of which some have a row more than others, or of torchrec-like the last one fewer rows,
/// count as if they were equal. No task is known where that matters, but nothing proves that there
/// is none: hence a tolerance of a thousandth.
RC_GTEST_PROP(LowerBoundProperty, NoPlannerOfUnevenRowsIsPredictedToDoBetter, ()) {
  expect_no_planner_below(task_with_room(), 0.001);
}

/// The task with as much memory as the plan needs, or more: no plan that does not fit is bounded.
/// Partial sums cost by their bytes, or all the same.
Simulator simulator_of_fitting(Task task, const ShardingPlan& plan) {
  const std::vector<std::int64_t> needed = device_memory(task, plan);
  const auto more = *rc::gen::element<std::int64_t>(1, 1, 2, 1000);
  for (std::size_t d = 0; d < needed.size(); ++d) {
    task.topology.memory_bytes[d] = more * std::max<std::int64_t>(needed[d], 1);
  }
  std::shared_ptr<const ComputeCostModel> compute = arbitrary_compute();
  if (*rc::gen::arbitrary<bool>()) return make_simulator(task, std::move(compute));
  const double partial_ms = *rc::gen::element(0.001, 0.1, 10.0);
  return {task, std::move(compute), std::make_shared<FlatPartialSums>(partial_ms)};
}

/// Any plan at all, most of which no planner would make: columns scattered in pieces of 4.
RC_GTEST_PROP(LowerBoundProperty, NoScatteredPlanCostsLess, ()) {
  const Task task = task_of_any_tightness();
  ShardingPlan plan;
  const int devices_used = *rc::gen::inRange(1, task.topology.world_size + 1);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const std::int64_t dim = task.tables[t].embedding_dim;
    const std::int64_t step = can_cut(dim) ? *rc::gen::element<std::int64_t>(4, 4, 8, dim) : dim;
    for (std::int64_t offset = 0; offset < dim; offset += step) {
      plan.shards.push_back({static_cast<int>(t), offset, std::min(step, dim - offset),
                             *rc::gen::inRange(0, devices_used)});
    }
  }
  const Simulator simulator = simulator_of_fitting(task, plan);
  const double cost_ms = simulator.cost(plan).cost_ms;
  RC_ASSERT(cost_ms >= lower_bound_ms(simulator, kColumnsAlone));
  RC_ASSERT(cost_ms >= lower_bound_ms(simulator, kColumnsAlone, 1.1 * cost_ms));
}

/// Plans of rows and copies of every kind that the bound looks at.
RC_GTEST_PROP(LowerBoundProperty, NoPlanOfRectanglesCostsLess, ()) {
  const Task task = task_of_any_tightness();
  ShardingPlan plan;
  const auto device = [&] { return *rc::gen::inRange(0, task.topology.world_size); };
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const int number = static_cast<int>(t);
    const Table& table = task.tables[t];
    const bool fits =
        shard_bytes(table, table.embedding_dim, task.optimizer) <=
        *std::min_element(task.topology.memory_bytes.begin(), task.topology.memory_bytes.end());
    if (fits && task.topology.world_size > 1 && *rc::gen::inRange(0, 4) == 0) {
      plan.replicated_tables.push_back(number);
      continue;
    }
    const std::int64_t dim = table.embedding_dim;
    const std::int64_t step = can_cut(dim) ? *rc::gen::element<std::int64_t>(4, 8, dim) : dim;
    for (std::int64_t offset = 0; offset < dim; offset += step) {
      const std::int64_t width = std::min(step, dim - offset);
      const int slices = *rc::gen::element(1, 2, 3, 4, task.topology.world_size);
      // Of as many rows as their share says exactly.
      if (slices > task.topology.world_size || table.num_embeddings % slices != 0) {
        plan.shards.push_back({number, offset, width, device()});
        continue;
      }
      const std::int64_t rows = table.num_embeddings / slices;
      for (int slice = 0; slice < slices; ++slice) {
        plan.shards.push_back(
            {number, offset, width, device(), slice * rows, slices == 1 ? 0 : rows});
      }
    }
  }
  const Simulator simulator = simulator_of_fitting(task, plan);
  const double cost_ms = simulator.cost(plan).cost_ms;
  // Not the cost itself, which no bound is above.
  const double known_ms = 2.0 * cost_ms;
  const double bound = lower_bound_ms(simulator, {}, known_ms);
  RC_ASSERT(cost_ms >= bound);
  // Of fewer plans, up to what is left between a bound and a known cost after six halvings.
  RC_ASSERT(lower_bound_ms(simulator, kColumnsAlone, known_ms) >= bound - known_ms / 64.0);
}

/// The tightest case: all that there is, divided evenly.
RC_GTEST_PROP(LowerBoundProperty, NoSliceForEachDeviceCostsLess, ()) {
  const int devices = *rc::gen::element(2, 3, 5, 7, 10, 11, 24, 40);
  const int slices = devices > 3 && *rc::gen::arbitrary<bool>() ? devices / 2 : devices;
  const std::int64_t rows = *rc::gen::element<std::int64_t>(10, 1000, 20'000, 300'000);
  Task task =
      one_host_task({make_table("hot", rows * slices, *rc::gen::element<std::int64_t>(4, 64, 128),
                                *rc::gen::element(1.0, 40.0))},
                    devices, std::int64_t{1} << 40);
  task.batch_size = *rc::gen::element(100, 4096, 65'536);
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  ShardingPlan plan;
  for (int d = 0; d < slices; ++d) {
    plan.shards.push_back({0, 0, task.tables[0].embedding_dim, d, rows * d, rows});
  }
  const double cost_ms = simulator.cost(plan).cost_ms;
  RC_ASSERT(cost_ms >= lower_bound_ms(simulator, {.columns = true, .rows = true}, 2.0 * cost_ms));
}

TEST(LowerBound, IsCloseWhereRowsDivideEvenly) {
  Task task = one_host_task({make_table("hot", 1'000'000, 64, 100.0)}, 4, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  const Simulator simulator = make_simulator(task);
  ShardingPlan plan;
  for (int d = 0; d < 4; ++d) plan.shards.push_back({0, 0, 64, d, 250'000 * d, 250'000});
  const double even = simulator.cost(plan).cost_ms;
  const double bound = lower_bound_ms(simulator, {}, 2.0 * even);
  EXPECT_LE(bound, even);
  EXPECT_GE(bound, 0.85 * even);
  EXPECT_GT(lower_bound_ms(simulator, kColumnsAlone), even);  // of columns alone
}

TEST(LowerBound, IsTheCostOfTheOnlyPlan) {
  const Simulator simulator =
      make_simulator(one_host_task({make_table("a", 1000, 7, 3.0)}, 1, 1 << 30));
  const double only = simulator.cost({{{0, 0, 7, 0}}}).cost_ms;
  EXPECT_NEAR(lower_bound_ms(simulator, kColumnsAlone), only, 1e-6 * only);
}

TEST(LowerBound, IsCloseWhereWorkDividesEvenly) {
  std::vector<Table> tables;
  ShardingPlan plan;
  for (int t = 0; t < 8; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1'000'000, 64, 10.0));
    plan.shards.push_back({t, 0, 64, t % 4});
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, std::int64_t{1} << 34));
  const double even = simulator.cost(plan).cost_ms;
  EXPECT_LE(lower_bound_ms(simulator, kColumnsAlone), even);
  EXPECT_GE(lower_bound_ms(simulator, kColumnsAlone), 0.98 * even);
}

TEST(LowerBound, OneTableThatCannotBeCutDecides) {
  std::vector<Table> tables{make_table("whole", 1'000'000, 127, 50.0)};
  for (int t = 0; t < 6; ++t) tables.push_back(make_table(fmt::format("t{}", t), 100, 4));
  const Simulator simulator = make_simulator(one_host_task(tables, 8, std::int64_t{1} << 34));
  const double alone = simulator.compute().cost([&] {
    std::vector<double> state(simulator.compute().state_size());
    simulator.encode(0, 127, state);
    return state;
  }());
  EXPECT_GE(lower_bound_ms(simulator, kColumnsAlone), alone * (1.0 - 1e-8));
}

constexpr Cuts kNoCuts{.columns = false, .rows = false, .replicas = false};

Task task_of_equal_tables(int num_tables, int num_devices) {
  std::vector<Table> tables;
  for (int t = 0; t < num_tables; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100'000, 64, 20.0));
  }
  Task task = one_host_task(std::move(tables), num_devices, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  return task;
}

/// What a device with these tables whole on it costs, if the others have as good as nothing.
double device_ms(const Simulator& simulator, std::span<const int> tables) {
  const ComputeCostModel& compute = simulator.compute();
  std::vector<double> state(compute.state_size(), 0.0);
  std::vector<double> one(state.size());
  std::int64_t columns = 0;
  for (const int table : tables) {
    const Table& of = simulator.task().tables[table];
    simulator.encode(table, of.embedding_dim, one);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += one[i];
    columns += pooled_columns(of, of.embedding_dim);
  }
  return compute.bound(state) + simulator.communication().floor_ms(simulator.task().topology,
                                                                   simulator.task().batch_size,
                                                                   static_cast<double>(columns));
}

TEST(LowerBound, TablesThatStayTogetherCountOnOneDevice) {
  Task task = task_of_equal_tables(2, 4);
  task.tables[1].same_device_as = "t0";
  const Simulator simulator = make_simulator(task);
  const double only = simulator.cost({{{0, 0, 64, 2}, {1, 0, 64, 2}}}).cost_ms;
  for (const Cuts& cuts : {Cuts{}, kColumnsAlone, kNoCuts}) {
    const double bound = lower_bound_ms(simulator, cuts, 2.0 * only);
    EXPECT_LE(bound, only);
    EXPECT_GE(bound, device_ms(simulator, std::vector{0, 1}) * (1.0 - 1e-8));
  }
}

TEST(LowerBound, TablesOfOneDeviceCountThereTogether) {
  Task task = task_of_equal_tables(8, 4);
  for (const int table : {1, 4, 6}) task.tables[table].devices = {3};
  task.allow = kNoCuts;
  const Simulator simulator = make_simulator(task);
  ShardingPlan plan;
  for (int t = 0; t < 8; ++t)
    plan.shards.push_back({t, 0, 64, std::vector{0, 3, 1, 2, 3, 0, 3, 1}[t]});
  const double best = simulator.cost(plan).cost_ms;
  const double bound = lower_bound_ms(simulator, {}, 2.0 * best);
  EXPECT_LE(bound, best);
  EXPECT_GE(bound, device_ms(simulator, std::vector{1, 4, 6}) * (1.0 - 1e-8));
}

/// Ten tables of two devices, of which four of one: five there at least.
TEST(LowerBound, TablesOfSomeDevicesCountWithThoseThatLieWithinThem) {
  Task task = task_of_equal_tables(12, 8);
  for (int t = 0; t < 10; ++t) task.tables[t].devices = {5, 2};
  for (int t = 0; t < 4; ++t) task.tables[t].devices = {2};
  task.allow = kNoCuts;
  const Simulator simulator = make_simulator(task);
  ShardingPlan plan;
  for (int t = 0; t < 10; ++t) plan.shards.push_back({t, 0, 64, t < 5 ? 2 : 5});
  plan.shards.push_back({10, 0, 64, 0});
  plan.shards.push_back({11, 0, 64, 1});
  const double best = simulator.cost(plan).cost_ms;
  const double bound = lower_bound_ms(simulator, {}, 2.0 * best);
  EXPECT_LE(bound, best);
  EXPECT_GE(bound, device_ms(simulator, std::vector{0, 1, 2, 3, 4}) * (1.0 - 1e-8));
}

TEST(LowerBound, ColumnsAreCutWhereCutsSaySo) {
  const Simulator simulator = make_simulator(task_of_equal_tables(1, 4));
  const double whole = device_ms(simulator, std::vector{0});
  EXPECT_GE(lower_bound_ms(simulator, kNoCuts), whole * (1.0 - 1e-8));
  EXPECT_LT(lower_bound_ms(simulator, kColumnsAlone), 0.7 * whole);
  ShardingPlan slices;
  for (int d = 0; d < 4; ++d) slices.shards.push_back({0, 0, 64, d, 25'000 * d, 25'000});
  const double sliced = simulator.cost(slices).cost_ms;
  const Cuts rows{.columns = false, .rows = true, .replicas = false};
  const double of_rows = lower_bound_ms(simulator, rows, 2.0 * sliced);
  EXPECT_LE(of_rows, sliced);
  EXPECT_GT(of_rows, lower_bound_ms(simulator, {true, true, false}, 2.0 * sliced));
}

TEST(LowerBound, AWideTableThatStaysWholeIsPriced) {
  Task task = task_of_equal_tables(1, 4);
  task.tables[0].embedding_dim = 2048;
  task.tables[0].allow.columns = false;
  const Simulator simulator = make_simulator(task);
  EXPECT_GE(lower_bound_ms(simulator, kColumnsAlone),
            device_ms(simulator, std::vector{0}) * (1.0 - 1e-8));
  EXPECT_EQ(unpriced_tables(task, kColumnsAlone), UnpricedTables{});
  task.tables[0].allow.columns = true;
  EXPECT_EQ(unpriced_tables(task, kColumnsAlone), (UnpricedTables{.ordered = 0, .others = 1}));
}

TEST(LowerBound, TablesInTheOrderOfTheirRowsArePricedWhereTheseStayTogether) {
  Task task = task_of_equal_tables(4, 4);
  for (Table& table : task.tables) {
    table.row_order = RowOrder::by_frequency;
    table.index_distribution = IndexDistribution{.zipf_exponent = 1.05};
  }
  task.tables[1].min_shard_rows = 50'001;
  task.tables[2].same_device_as = "t3";
  EXPECT_EQ(unpriced_tables(task, {}), (UnpricedTables{.ordered = 1, .others = 0}));
  EXPECT_EQ(unpriced_tables(task, kColumnsAlone), UnpricedTables{});
  const Simulator simulator = make_simulator(task);
  EXPECT_GE(lower_bound_ms(simulator, {}), device_ms(simulator, std::vector{2, 3}) * (1.0 - 1e-8));
  task.tables[3].same_device_as = task.tables[2].same_device_as = "";
  task.tables[2].allow.rows = task.tables[3].allow.rows = false;
  EXPECT_EQ(unpriced_tables(task, {}), (UnpricedTables{.ordered = 1, .others = 0}));
}

/// Several slices of a table may lie on one device, where they may cost less than the whole.
TEST(LowerBound, ATableInTheOrderOfItsRowsIsLeftOutOnASingleDeviceToo) {
  Task task = task_of_equal_tables(1, 1);
  task.tables[0].row_order = RowOrder::by_frequency;
  task.tables[0].index_distribution = IndexDistribution{.zipf_exponent = 1.2};
  EXPECT_EQ(unpriced_tables(task, {}), (UnpricedTables{.ordered = 1, .others = 0}));
  const Simulator simulator = make_simulator(task);
  const std::int64_t rows = task.tables[0].num_embeddings;
  for (const std::int64_t hot : {std::int64_t{50}, std::int64_t{500}, rows / 2}) {
    const std::int64_t columns = task.tables[0].embedding_dim;
    const ShardingPlan plan{{{0, 0, columns, 0, 0, hot}, {0, 0, columns, 0, hot, rows - hot}}};
    EXPECT_GE(simulator.cost(plan).cost_ms, lower_bound_ms(simulator, {}));
  }
}

TEST(LowerBound, KnowsSlicesThatItDoesNotLookAt) {
  Task task = task_of_equal_tables(2, 10);
  task.tables[0].num_embeddings = 1003;
  const auto has_others = [&](const std::vector<std::int64_t>& rows) {
    ShardingPlan plan{{{1, 0, 64, 0}}, {}};
    std::int64_t offset = 0;
    for (const std::int64_t num_rows : rows) {
      plan.shards.push_back({0, 0, 64, static_cast<int>(plan.shards.size()), offset, num_rows});
      offset += num_rows;
    }
    EXPECT_EQ(offset, 1003);
    return has_other_slices(task, plan);
  };
  EXPECT_FALSE(has_others({502, 501}));
  EXPECT_FALSE(has_others({403, 600}));                 // 4 of 10, of which 3 have a row more
  EXPECT_FALSE(has_others({201, 201, 201, 200, 200}));  // fifths
  EXPECT_FALSE(has_others({500, 503}));                 // five tenths, shorter ones and others
  EXPECT_TRUE(has_others({450, 553}));
  EXPECT_TRUE(has_others({144, 859}));  // a seventh
  EXPECT_FALSE(has_others({1003}));
  task.tables[0].min_shard_rows = 200;  // no tenths
  EXPECT_TRUE(has_others({301, 702}));
  task.tables[0].row_access = {{0.1, 0.5}, {1.0, 1.0}};
  EXPECT_FALSE(has_others({144, 859}));
}

/// Counts what it encodes.
class CountingCompute final : public AnalyticComputeModel {
 public:
  CountingCompute() : AnalyticComputeModel(find_compute_hardware("a100-40gb")) {}

  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override {
    ++num_encoded_;
    AnalyticComputeModel::encode(table, num_columns, settings, contribution);
  }
  [[nodiscard]] int num_encoded() const { return num_encoded_; }

 private:
  mutable int num_encoded_ = 0;
};

constexpr int kWideTables = 100;

/// Tables that are too wide to be divided in every way, and may be on every device.
Task task_of_wide_tables() {
  std::vector<Table> tables;
  for (int t = 0; t < kWideTables; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1000, 2048));
  }
  return one_host_task(std::move(tables), 2, std::int64_t{1} << 34);
}

TEST(LowerBound, EncodesACopyOnce) {
  const auto compute = std::make_shared<CountingCompute>();
  const Simulator simulator = make_simulator(task_of_wide_tables(), compute);
  const int encoded_before = compute->num_encoded();
  (void)lower_bound_ms(simulator, {});
  EXPECT_EQ(compute->num_encoded() - encoded_before, kWideTables);
}

/// Slices that are looked at of this many tables, each of other rows.
int encoded_slices(int num_tables, int num_devices, std::int64_t columns) {
  std::vector<Table> tables;
  for (int t = 0; t < num_tables; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 10'000 + t, columns));
    tables.back().allow.replicas = false;
  }
  const auto compute = std::make_shared<CountingCompute>();
  const Simulator simulator =
      make_simulator(one_host_task(std::move(tables), num_devices, std::int64_t{1} << 40), compute);
  const int encoded_before = compute->num_encoded();
  (void)lower_bound_ms(simulator, {});
  return compute->num_encoded() - encoded_before;
}

/// Where most tables are left out, less is looked at: what is left says little.
TEST(LowerBound, LooksAtLessWhereMostTablesAreLeftOut) {
  // 1/2, 1/3, 1/4, 1/6, 1/8 and what they add up to, and 1.
  EXPECT_EQ(encoded_slices(120, 8, 128), 120 * 32 * 12);
  const int of_many = encoded_slices(1000, 128, 128);
  EXPECT_GT(of_many, 100'000);
  EXPECT_LE(of_many, 130'000);
}

TEST(LowerBound, LooksAtTheClockWhereTablesAreNotDivided) {
  const auto compute = std::make_shared<CountingCompute>();
  const Simulator simulator = make_simulator(task_of_wide_tables(), compute);
  const int encoded_before = compute->num_encoded();
  const StopClock over(StopClock::Clock::now());
  EXPECT_THROW((void)lower_bound_ms(simulator, {}, std::numeric_limits<double>::infinity(), over),
               TimeIsOver);
  EXPECT_LT(compute->num_encoded() - encoded_before, kWideTables);
}

TEST(LowerBound, ThereIsNoneForAModelWithoutStructure) {
  const Simulator simulator =
      make_simulator(one_host_task({make_table("a", 1000, 16, 3.0)}, 2, 1 << 30),
                     random_model(ComputeArchitecture::published, 3));
  EXPECT_EQ(lower_bound_ms(simulator, kColumnsAlone), 0.0);
}

}  // namespace
}  // namespace neuroshard
