// Improvement of plans: valid, never worse, the same on any number of threads, and of use.
#include "neuroshard/search/improve/local_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>

#include "neuroshard/core/error.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

constexpr std::array kMethods{ImprovementMethod::both, ImprovementMethod::annealing,
                              ImprovementMethod::large_neighbourhood};

LocalSearchOptions short_search() {
  LocalSearchOptions options;
  options.num_steps = 200;
  return options;
}

RC_GTEST_PROP(LocalSearchProperty, PlansAreValidNoWorseAndTheSameOnAnyNumberOfThreads, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  LocalSearchOptions options = short_search();
  options.method = *rc::gen::elementOf(kMethods);
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  ThreadPool one(1);
  const PlanningResult result = improve_plan(simulator, fit.plan, options, one);
  RC_ASSERT(violations(simulator.task(), result.plan).empty());
  RC_ASSERT(result.predicted.cost_ms <= simulator.cost(fit.plan).cost_ms);
  RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
  ThreadPool three(3);
  const PlanningResult other = improve_plan(simulator, fit.plan, options, three);
  RC_ASSERT(other.plan.shards == result.plan.shards);
  RC_ASSERT(other.stats.head_evaluations == result.stats.head_evaluations);
}

LocalSearchOptions budget(double seconds, int devices, std::int64_t steps = 0,
                          std::int64_t head_evaluations = 0) {
  PlannerOptions options;
  options.time_limit_seconds = seconds;
  options.steps = steps;
  LocalSearchOptions improvement;
  set_budget(improvement, options, devices, head_evaluations);
  return improvement;
}

/// Nominal time of all rounds on one thread [ms].
double nominal_ms(const LocalSearchOptions& options) {
  return static_cast<double>(options.num_rounds) * options.num_chains * options.round_ms;
}

TEST(SearchBudget, IsHalfOfTheTimeLimitInNominalTime) {
  const LocalSearchOptions standard;
  EXPECT_EQ(budget(1.0, 8).num_rounds, standard.num_rounds);
  EXPECT_EQ(budget(1.0, 8).patience, standard.patience);
  EXPECT_EQ(budget(1.0, 8).round_ms, standard.round_ms);
  EXPECT_EQ(budget(600.0, 4).num_rounds, 600 * standard.num_rounds);
  EXPECT_EQ(budget(600.0, 4).patience, 600 * standard.patience);
  for (const int devices : {1, 4, 16, 100, 1024, 1 << 30}) {
    for (const double seconds : {0.01, 0.1, 1.0, 10.0}) {
      SCOPED_TRACE(fmt::format("{} devices, {} s", devices, seconds));
      EXPECT_NEAR(nominal_ms(budget(seconds, devices)), 500.0 * seconds, 1e-6 * seconds);
      EXPECT_GE(budget(seconds, devices).num_rounds, 1);
      EXPECT_GE(budget(seconds, devices).patience, 1);
    }
  }
  // As a step's price grows with the devices, so does a round.
  EXPECT_EQ(budget(10.0, 80).num_rounds, 4);
}

TEST(SearchBudget, TheBeamSearchIsCountedIn) {
  const double all_ms = nominal_ms(budget(1.0, 8));
  const double rest_ms = nominal_ms(budget(1.0, 8, 0, 1'000'000));
  EXPECT_LT(rest_ms, all_ms - 100.0);
  EXPECT_GT(rest_ms, 0.0);
  EXPECT_EQ(budget(1.0, 8, 0, 10'000'000).num_rounds, 0);
  EXPECT_LT(nominal_ms(budget(1.0, 1024, 0, 500'000)), nominal_ms(budget(1.0, 8, 0, 500'000)));
}

TEST(SearchBudget, StepsArePlayedInFullRounds) {
  EXPECT_EQ(budget(1.0, 4, 1000).num_steps, 1000);
  EXPECT_EQ(budget(1.0, 4, 1000).round_ms, std::numeric_limits<double>::infinity());
  EXPECT_EQ(budget(1.0, 4, 1000).num_rounds, 1);
  EXPECT_EQ(budget(1.0, 4, 30'000).num_steps, brief_local_search().num_steps);
  EXPECT_EQ(budget(1.0, 4, 30'000).num_rounds, 2);
  EXPECT_EQ(budget(1.0, 4, 30'000).first_temperature, brief_local_search().first_temperature);
  EXPECT_EQ(budget(1.0, 4, 180'000).num_steps, 60'000);
  EXPECT_EQ(budget(1.0, 4, 180'000).num_rounds, 3);
  EXPECT_EQ(budget(1.0, 4, 30'000).method, ImprovementMethod::annealing);
  EXPECT_EQ(budget(1.0, 4, 180'000).method, ImprovementMethod::both);
  EXPECT_EQ(budget(1.0, 4, 180'000).patience, 3);  // all of them
  EXPECT_EQ(budget(1.0, 1024, 180'000).num_rounds, 3);
}

RC_GTEST_PROP(LocalSearchProperty, RoundsThatEndByWorkAreTheSameOnAnyNumberOfThreads, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  LocalSearchOptions options;
  options.num_steps = std::numeric_limits<std::int64_t>::max();
  options.round_ms = 0.05;
  options.method = *rc::gen::elementOf(kMethods);
  ThreadPool one(1);
  const PlanningResult result = improve_plan(simulator, fit.plan, options, one);
  ThreadPool three(3);
  const PlanningResult other = improve_plan(simulator, fit.plan, options, three);
  RC_ASSERT(other.plan.shards == result.plan.shards);
  RC_ASSERT(other.stats.head_evaluations == result.stats.head_evaluations);
}

TEST(LocalSearch, WithoutStepsThePlanStays) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1000, 64), make_table("b", 1000, 64)}, 2, 1 << 30));
  const ShardingPlan plan{{{0, 0, 64, 0}, {1, 0, 64, 0}}};
  ThreadPool pool(1);
  LocalSearchOptions options;
  options.num_rounds = 0;
  EXPECT_EQ(improve_plan(simulator, plan, options, pool).plan.shards, plan.shards);
  options = {};
  options.deadline = std::chrono::steady_clock::now();  // too late
  EXPECT_EQ(improve_plan(simulator, plan, options, pool).plan.shards, plan.shards);
  EXPECT_EQ(improve_plan(simulator, plan, short_search(), pool).plan.shards.size(), 2u);
}

TEST(LocalSearch, SpreadsWhatLiesOnOneDevice) {
  std::vector<Table> tables;
  ShardingPlan plan;
  ShardingPlan even;
  for (int t = 0; t < 8; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1'000'000, 64, 10.0));
    plan.shards.push_back({t, 0, 64, 0});
    even.shards.push_back({t, 0, 64, t % 4});
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, std::int64_t{1} << 34));
  ThreadPool pool(1);
  ASSERT_LT(simulator.cost(even).cost_ms, 0.7 * simulator.cost(plan).cost_ms);
  for (const ImprovementMethod method : kMethods) {
    LocalSearchOptions options;
    options.method = method;
    options.num_steps = 10'000;
    EXPECT_LE(improve_plan(simulator, plan, options, pool).predicted.cost_ms,
              simulator.cost(even).cost_ms);
  }
}

TEST(LocalSearch, CutsUnevenlyWhereThatIsBest) {
  // One table on two devices, one of which has room for a quarter of it.
  // A batch so large that the cut pays: what is minimised counts a tenth of all devices' work.
  Task task = one_host_task({make_table("a", 1'000'000, 64, 10.0)}, 2, std::int64_t{1} << 30);
  task.batch_size = 65'536;
  task.topology.memory_bytes[1] = 64'000'000;
  const Simulator simulator = make_simulator(task);
  ThreadPool pool(1);
  for (const ImprovementMethod method : kMethods) {
    LocalSearchOptions options;
    options.method = method;
    const PlanningResult result = improve_plan(simulator, {{{0, 0, 64, 0}}}, options, pool);
    EXPECT_THAT(violations(task, result.plan), testing::IsEmpty());
    EXPECT_EQ(result.plan.shards, (std::vector<Shard>{{0, 0, 48, 0}, {0, 48, 16, 1}}))
        << static_cast<int>(method);
  }
}

TEST(LocalSearch, ImprovesPlansForManyDevices) {
  std::vector<Table> tables;
  ShardingPlan plan;
  for (int t = 0; t < 60; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100'000, 64, 1.0 + t));
    plan.shards.push_back({t, 0, 64, t / 3});
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 24, std::int64_t{1} << 30));
  ThreadPool pool(1);
  for (const ImprovementMethod method : kMethods) {
    LocalSearchOptions options;
    options.method = method;
    options.num_steps = 5'000;
    const PlanningResult result = improve_plan(simulator, plan, options, pool);
    EXPECT_THAT(violations(simulator.task(), result.plan), testing::IsEmpty());
    EXPECT_LT(result.predicted.cost_ms, 0.8 * simulator.cost(plan).cost_ms);
  }
}

TEST(LocalSearch, LargeNeighbourhoodsEvenOutFullDevices) {
  // Three tables fill a device; the three costliest are together. A magic square evens them out.
  constexpr int kDeviceOf[] = {0, 2, 1, 2, 1, 0, 1, 0, 2};
  std::vector<Table> tables;
  ShardingPlan plan;
  ShardingPlan even;
  for (int t = 0; t < 9; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100'000, 64, 1.0 + 3.0 * t));
    plan.shards.push_back({t, 0, 64, t / 3});
    even.shards.push_back({t, 0, 64, kDeviceOf[t]});
  }
  const Task task = one_host_task(tables, 3, std::int64_t{4} * 100'000 * 64 * 3);
  const Simulator simulator = make_simulator(task);
  ThreadPool pool(1);
  LocalSearchOptions options;
  options.method = ImprovementMethod::large_neighbourhood;
  const PlanningResult result = improve_plan(simulator, plan, options, pool);
  EXPECT_THAT(violations(task, result.plan), testing::IsEmpty());
  EXPECT_LT(result.predicted.cost_ms, simulator.cost(plan).cost_ms);
  EXPECT_LE(result.predicted.cost_ms, simulator.cost(even).cost_ms);
}

RC_GTEST_PROP(NeuroShardPlannerProperty, IsValidAndNoWorseThanTheSearchItStartsFrom, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  PlannerOptions options;
  options.steps = 200;
  options.least_gain = *rc::gen::element(0.0, 0.01);
  options.pessimism = *rc::gen::element(0.0, 0.5);
  const PlanningResult improved = NeuroShardPlanner().plan(simulator, options);
  const PlanningResult searched = BeamSearchPlanner().plan(simulator, options);
  RC_ASSERT(violations(simulator.task(), improved.plan).empty());
  RC_ASSERT(improved.predicted.cost_ms <= searched.predicted.cost_ms);
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
}

TEST(NeuroShardPlanner, OneDeviceIsNotImproved) {
  const Simulator simulator = make_simulator(one_host_task({make_table("a", 10, 64)}, 1, 1 << 30));
  PlannerOptions options;
  options.time_limit_seconds = std::numeric_limits<double>::infinity();
  EXPECT_EQ(NeuroShardPlanner().plan(simulator, options).plan.shards,
            (std::vector<Shard>{{0, 0, 64, 0}}));
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
  EXPECT_EQ(improved.stats.plans_priced, searched.stats.plans_priced);
}

TEST(NeuroShardPlanner, KeepsTheSearchsPlanWhereLittleIsToGain) {
  std::vector<Table> tables;
  for (int t = 0; t < 9; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100'000 * (1 + t), 64, 3.0 + 2.0 * t));
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, 300'000'000));
  const PlanningResult searched = BeamSearchPlanner().plan(simulator, {});
  double longest_ms = 0.0;
  for (const DeviceCost& device : searched.predicted.devices) {
    longest_ms = std::max(longest_ms, device.compute_ms);
  }
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
