// The search followed by improvement: valid, no worse than what it starts from, and other cuts than
// columns for a sufficient gain alone.
#include "neuroshard/search/neuroshard_planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/search/improved_plan.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "tests/search/arbitrary_simulator.h"
#include "tests/search/few_large_tables.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_with_few_large_tables;

bool has_other_cuts(const ShardingPlan& plan) {
  return !plan.replicated_tables.empty() || plan.num_row_slices() > 0;
}

/// Whether nothing is cut or placed otherwise.
bool same(const ShardingPlan& a, const ShardingPlan& b) {
  return a.shards == b.shards && a.replicated_tables == b.replicated_tables;
}

RC_GTEST_PROP(NeuroShardPlannerProperty, IsValidAndNoWorseThanTheSearchItStartsFrom, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  PlannerOptions options;
  options.steps = 200;
  options.improvement =
      *rc::gen::element(ImprovementSchedule::thorough, ImprovementSchedule::brief);
  options.least_gain = *rc::gen::element(0.0, 0.01);
  options.pessimism = *rc::gen::element(0.0, 0.5);
  const PlanningResult improved = NeuroShardPlanner().plan(simulator, options);
  const PlanningResult searched = BeamSearchPlanner().plan(simulator, options);
  RC_ASSERT(violations(simulator.task(), improved.plan).empty());
  // Slices and copies that promise too little are left.
  const double left_ms = 2.5 * options.least_gain * longest_compute_ms(improved.predicted);
  RC_ASSERT(improved.predicted.cost_ms <= searched.predicted.cost_ms + left_ms);
}

TEST(NeuroShardPlanner, TellsAnObserverHowFarItIs) {
  std::vector<Table> tables;
  for (int t = 0; t < 12; ++t) tables.push_back(make_table(fmt::format("t{}", t), 1000, 32, 4.0));
  const Simulator simulator = make_simulator(one_host_task(tables, 4, 1 << 20));
  PlannerOptions options;
  options.steps = 120'000;
  options.cuts = kColumnsAlone;
  const PlanningResult unobserved = NeuroShardPlanner().plan(simulator, options);
  std::vector<PlanningProgress> told;
  const PlanningObserver observer = [&](const PlanningProgress& progress) {
    told.push_back(progress);
  };
  options.observer = &observer;
  options.num_threads = 1;
  const PlanningResult observed = NeuroShardPlanner().plan(simulator, options);
  EXPECT_TRUE(same(observed.plan, unobserved.plan));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().stage, PlanningStage::first_plan);
  EXPECT_EQ(told.front().done, 1);
  const PlanningProgress& last = told.back();
  EXPECT_EQ(last.stage, PlanningStage::improvement);
  EXPECT_EQ(last.all, 2);  // rounds of 60,000 steps
  EXPECT_EQ(last.done, 2);
  EXPECT_GT(last.best_cost_ms.value(), 0.0);
}

RC_GTEST_PROP(NeuroShardPlannerProperty, TakesOtherCutsForASufficientGainAlone, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task(), false).feasible);
  PlannerOptions options;
  options.steps = 200;
  options.least_gain = *rc::gen::element(0.0, 0.01, 0.05);
  const PlanningResult all = NeuroShardPlanner().plan(simulator, options);
  options.cuts = kColumnsAlone;
  const PlanningResult columns = NeuroShardPlanner().plan(simulator, options);
  const double least_ms = 2.5 * options.least_gain * longest_compute_ms(columns.predicted);
  RC_ASSERT(same(all.plan, columns.plan) ||
            all.predicted.cost_ms < columns.predicted.cost_ms - least_ms ||
            (!has_other_cuts(all.plan) && all.predicted.cost_ms < columns.predicted.cost_ms));
  RC_CLASSIFY(same(all.plan, columns.plan), "columns");
  RC_CLASSIFY(has_other_cuts(all.plan), "other cuts");
}

RC_GTEST_PROP(NeuroShardPlannerProperty, CopiesNeverMakeAPlanDearer, ()) {
  // Of the one kind hardly any plan has copies.
  const Task task = *rc::gen::arbitrary<bool>()
                        ? conditioned_task()
                        : task_with_few_large_tables(*rc::gen::arbitrary<std::uint64_t>(),
                                                     *rc::gen::element(2, 3, 4));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  RC_PRE(fit_memory(simulator.task(), true).feasible);
  PlannerOptions options;
  options.steps = 200;
  options.least_gain = *rc::gen::element(0.0, 0.01, 0.05);
  const PlanningResult all = NeuroShardPlanner().plan(simulator, options);
  options.cuts.replicas = false;
  const PlanningResult without_copies = NeuroShardPlanner().plan(simulator, options);
  // Copies that promise too little are left for the best plan that has neither them nor slices.
  const double left_ms = without_copies.plan.num_row_slices() > 0
                             ? 2.5 * options.least_gain * longest_compute_ms(all.predicted)
                             : 0.0;
  RC_ASSERT(all.predicted.cost_ms <= without_copies.predicted.cost_ms + left_ms);
  RC_CLASSIFY(!all.plan.replicated_tables.empty(), "copies");
}

/// A task that devices filled to the last columns have room for, or slices of rows, which are found
/// sooner and cost more.
TEST(NeuroShardPlanner, LooksForColumnsAloneWhereTheyAreHardToFit) {
  std::vector<Table> tables;
  const auto add = [&](std::int64_t rows, std::int64_t columns, DataType type, double pooling) {
    tables.push_back(make_table(fmt::format("t{}", tables.size()), rows, columns, pooling));
    tables.back().data_type = type;
  };
  add(23'793, 1, DataType::fp16, 2.5);
  add(1, 256, DataType::fp16, 1.0);
  add(14'484, 10, DataType::fp16, 0.3);
  add(28'649, 100, DataType::fp32, 20.0);
  add(538, 64, DataType::fp16, 2.5);
  add(744, 128, DataType::fp32, 0.3);
  add(1, 16, DataType::fp32, 0.3);
  add(1'563, 128, DataType::fp32, 0.3);
  add(10'703, 8, DataType::fp32, 1.0);
  add(25'011, 10, DataType::fp16, 20.0);
  Task task = one_host_task(std::move(tables), 4, 3'472'552);
  task.topology.local_world_size = 2;
  task.batch_size = 26;
  const Simulator simulator = make_simulator(task);
  ASSERT_TRUE(fit_memory(task, true).by_rows);
  PlannerOptions options;
  options.steps = 200;
  options.least_gain = 0.0;
  const PlanningResult all = NeuroShardPlanner().plan(simulator, options);
  options.cuts = kColumnsAlone;
  const PlanningResult columns = NeuroShardPlanner().plan(simulator, options);
  EXPECT_LE(all.predicted.cost_ms, columns.predicted.cost_ms);
}

/// Copies that the search makes and its moves take away again: without them it comes to another
/// plan, which the improvement makes cheaper.
TEST(NeuroShardPlanner, LooksForAPlanWithoutCopiesWhereTheyWereMovedAway) {
  Task task = task_with_few_large_tables(22, 4);
  std::int64_t bytes = 0;
  for (const Table& table : task.tables) {
    bytes += shard_bytes(table, table.embedding_dim, task.optimizer);
  }
  task.topology.memory_bytes.assign(4, bytes * 3 / 8);
  const Simulator simulator = make_simulator(task);
  PlannerOptions options;
  options.steps = 200;
  const PlanningResult all = NeuroShardPlanner().plan(simulator, options);
  options.cuts.replicas = false;
  const PlanningResult without_copies = NeuroShardPlanner().plan(simulator, options);
  EXPECT_LE(all.predicted.cost_ms, without_copies.predicted.cost_ms);
}

/// As many slices as devices, which no power of two is.
TEST(NeuroShardPlanner, CutsTheRowsOfATableOfAllLookupsForEveryDevice) {
  Table hot = make_table("hot", 10'000'000, 4, 100.0);
  for (const int devices : {5, 24}) {
    const Simulator simulator = make_simulator(one_host_task({hot}, devices, 1 << 30));
    const PlanningResult found = NeuroShardPlanner().plan(simulator, {});
    EXPECT_EQ(found.plan.num_row_slices(), devices);
  }
}

TEST(BeamSearchPlanner, CutsNoColumnsThatMayNotBeCut) {
  const Simulator simulator =
      make_simulator(one_host_task({make_table("a", 1000, 64, 8.0)}, 2, 1 << 30));
  PlannerOptions options;
  EXPECT_EQ(BeamSearchPlanner().plan(simulator, options).plan.shards.size(), 2);
  options.cuts = {.columns = false, .rows = false, .replicas = false};
  EXPECT_EQ(BeamSearchPlanner().plan(simulator, options).plan.shards.size(), 1);
  EXPECT_EQ(BeamSearchPlanner().cuts(options), options.cuts);
}

TEST(NeuroShardPlanner, RefusesOptionsThatMeanNothing) {
  const Simulator simulator = make_simulator(one_host_task({make_table("a", 10, 64)}, 2, 1 << 30));
  PlannerOptions options;
  for (const double seconds : {0.0, -1.0, -1e300, std::numeric_limits<double>::quiet_NaN()}) {
    options.time_limit_seconds = seconds;
    EXPECT_THROW((void)NeuroShardPlanner().plan(simulator, options), InputError) << seconds;
  }
  options.time_limit_seconds = 1.0;
  options.steps = -1;
  EXPECT_THROW((void)NeuroShardPlanner().plan(simulator, options), InputError);
  options.steps = 0;
  for (const double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    options.pessimism = share;
    EXPECT_THROW((void)NeuroShardPlanner().plan(simulator, options), InputError) << share;
    options.pessimism = 0.5;
    options.least_gain = share;
    EXPECT_THROW((void)NeuroShardPlanner().plan(simulator, options), InputError) << share;
    options.least_gain = 0.0;
  }
}

TEST(NeuroShardPlanner, OneDeviceIsNotImproved) {
  const Simulator simulator = make_simulator(one_host_task({make_table("a", 10, 64)}, 1, 1 << 30));
  PlannerOptions options;
  options.time_limit_seconds = std::numeric_limits<double>::infinity();
  EXPECT_EQ(NeuroShardPlanner().plan(simulator, options).plan.shards,
            (std::vector<Shard>{{0, 0, 64, 0}}));
}

TEST(NeuroShardPlanner, TheImprovementTakesPartInTheDefaultSecondOn128Devices) {
  Random random(1);
  std::vector<Table> tables;
  for (int t = 0; t < 1000; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), random.integer(1'000, 1'000'000),
                                4 * random.integer(1, 32), random.uniform(1.0, 30.0)));
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 128, std::int64_t{4} << 30));
  const PlanningResult result = NeuroShardPlanner().plan(simulator, PlannerOptions{});
  ASSERT_FALSE(result.stats.rounds.empty());
  std::int64_t steps = 0;
  for (const ChainStats& chain : result.stats.rounds.front().chains) steps += chain.steps;
  EXPECT_GT(steps, 1'000);
}

TEST(NeuroShardPlanner, IsNoWorseThanTheSearchItStartsFrom) {
  std::vector<Table> tables;
  for (int t = 0; t < 12; ++t) {
    tables.push_back(
        make_table(fmt::format("t{}", t), 1000 * (t + 1) * (t + 1), 16 * (1 + t % 4), 1.0 + t));
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 3, 1 << 30));
  const NeuroShardPlanner planner;
  EXPECT_EQ(planner.name(), "neuroshard");
  const PlanningResult improved = planner.plan(simulator, {});
  const PlanningResult searched = BeamSearchPlanner().plan(simulator, {});
  EXPECT_LE(improved.predicted.cost_ms, searched.predicted.cost_ms);
  EXPECT_GE(improved.stats.head_evaluations, searched.stats.head_evaluations);
  EXPECT_GE(improved.stats.plans_priced, searched.stats.plans_priced);
}

TEST(NeuroShardPlanner, KeepsTheSearchsPlanWhereLittleIsToGain) {
  std::vector<Table> tables;
  for (int t = 0; t < 9; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100'000 * (1 + t), 64, 3.0 + 2.0 * t));
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, 300'000'000));
  const PlanningResult searched = BeamSearchPlanner().plan(simulator, {});
  const double longest_ms = longest_compute_ms(searched.predicted);
  PlannerOptions options;
  options.steps = 60'000;
  options.time_limit_seconds = 1e-9;  // does not count
  const auto plan = [&](double least_gain) {
    options.least_gain = least_gain;
    return NeuroShardPlanner().plan(simulator, options);
  };
  const double gain_ms = searched.predicted.cost_ms - plan(0.0).predicted.cost_ms;
  ASSERT_GT(gain_ms, 0.0);
  EXPECT_EQ(plan(1.01 * gain_ms / longest_ms).plan.shards, searched.plan.shards);
  EXPECT_EQ(plan(0.99 * gain_ms / longest_ms).predicted.cost_ms,
            searched.predicted.cost_ms - gain_ms);
}

}  // namespace
}  // namespace neuroshard
