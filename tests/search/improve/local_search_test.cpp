// Improvement of plans: valid, never worse, the same on any number of threads, and effective.
#include "neuroshard/search/improve/local_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <vector>

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

using Chains = std::vector<ChainKind>;

/// Both kinds, and each alone.
const std::array kChains{Chains{ChainKind::annealing, ChainKind::large_neighbourhood},
                         Chains{ChainKind::annealing, ChainKind::annealing},
                         Chains{ChainKind::large_neighbourhood, ChainKind::large_neighbourhood}};

/// A search of `num_rounds` rounds of `round_steps` steps.
struct Search {
  LocalSearchOptions options;
  LocalSearchBudget budget;

  explicit Search(std::int64_t round_steps = 60'000, std::int64_t num_rounds = 4) {
    options.round_steps = round_steps;
    budget.steps = num_rounds * round_steps;
  }

  [[nodiscard]] PlanningResult improve(const Simulator& simulator, const ShardingPlan& plan,
                                       int num_threads = 1) const {
    ThreadPool pool(num_threads);
    return improve_plan(simulator, plan, options, budget, pool);
  }
};

RC_GTEST_PROP(LocalSearchProperty, PlansAreValidNoWorseAndTheSameOnAnyNumberOfThreads, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  Search search(200);
  search.options.chains = *rc::gen::elementOf(kChains);
  search.budget.seed = *rc::gen::arbitrary<std::uint64_t>();
  const PlanningResult result = search.improve(simulator, fit.plan);
  RC_ASSERT(violations(simulator.task(), result.plan).empty());
  RC_ASSERT(result.predicted.cost_ms <= simulator.cost(fit.plan).cost_ms);
  RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
  const PlanningResult other = search.improve(simulator, fit.plan, 3);
  RC_ASSERT(other.plan.shards == result.plan.shards);
  RC_ASSERT(other.stats.head_evaluations == result.stats.head_evaluations);
}

PlannerOptions planner_options(double seconds, std::int64_t steps) {
  PlannerOptions options;
  options.time_limit_seconds = seconds;
  options.steps = steps;
  return options;
}

/// Of the thorough schedule, with columns alone.
Rounds rounds_within(double seconds, int devices, std::int64_t head_evaluations = 0,
                     const Cuts& cuts = kColumnsAlone) {
  PlannerOptions options = planner_options(seconds, 0);
  options.cuts = cuts;
  return rounds_of({}, improvement_budget(options, devices, head_evaluations), devices);
}

Rounds rounds_of_steps(ImprovementSchedule schedule, std::int64_t steps, int devices = 4) {
  return rounds_of(local_search_options(schedule),
                   improvement_budget(planner_options(1.0, steps), devices, 0), devices);
}

/// Nominal time of all rounds on one thread [ms]; no rounds take none, whatever their length.
double nominal_ms(const Rounds& rounds) {
  const auto num_chains = static_cast<double>(LocalSearchOptions{}.chains.size());
  return rounds.count == 0 ? 0.0
                           : static_cast<double>(rounds.count) * num_chains * rounds.nominal_ms;
}

TEST(SearchBudget, IsHalfOfTheTimeLimitInNominalTime) {
  EXPECT_EQ(rounds_within(1.0, 8).count, 4);
  EXPECT_EQ(rounds_within(1.0, 8).patience, 2);
  EXPECT_EQ(rounds_within(1.0, 8).nominal_ms, LocalSearchOptions{}.round_ms);
  EXPECT_EQ(rounds_within(1.0, 8).steps, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(rounds_within(600.0, 4).count, 600 * 4);
  EXPECT_EQ(rounds_within(600.0, 4).patience, 600 * 2);
  for (const int devices : {1, 4, 16, 100, 1024, 1 << 30}) {
    for (const double seconds : {0.01, 0.1, 1.0, 10.0}) {
      SCOPED_TRACE(fmt::format("{} devices, {} s", devices, seconds));
      EXPECT_NEAR(nominal_ms(rounds_within(seconds, devices)), 500.0 * seconds, 1e-6 * seconds);
      EXPECT_GE(rounds_within(seconds, devices).count, 1);
      EXPECT_GE(rounds_within(seconds, devices).patience, 1);
    }
  }
  // As a step's price grows with the devices, so does a round.
  EXPECT_EQ(rounds_within(10.0, 80).count, 4);
}

TEST(SearchBudget, TheBeamSearchIsCountedIn) {
  const double all_ms = nominal_ms(rounds_within(1.0, 8));
  const double rest_ms = nominal_ms(rounds_within(1.0, 8, 1'000'000));
  EXPECT_LT(rest_ms, all_ms - 100.0);
  EXPECT_GT(rest_ms, 0.0);
  EXPECT_EQ(rounds_within(1.0, 8, 10'000'000).count, 0);
  EXPECT_LT(nominal_ms(rounds_within(1.0, 1024, 500'000)),
            nominal_ms(rounds_within(1.0, 8, 500'000)));
}

TEST(SearchBudget, WithAllCutsThereIsSomeWhateverTheBeamSearchTook) {
  EXPECT_EQ(nominal_ms(rounds_within(1.0, 8, 100'000, {})),
            nominal_ms(rounds_within(1.0, 8, 100'000)));
  EXPECT_NEAR(nominal_ms(rounds_within(1.0, 128, 1'000'000'000, {})), 250.0, 1e-6);
  EXPECT_NEAR(nominal_ms(rounds_within(60.0, 1024, 1'000'000'000, {})), 15'000.0, 1e-6);
}

TEST(SearchBudget, StepsArePlayedInFullRounds) {
  using enum ImprovementSchedule;
  EXPECT_EQ(rounds_of_steps(thorough, 1000).steps, 1000);
  EXPECT_EQ(rounds_of_steps(thorough, 1000).nominal_ms, std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounds_of_steps(thorough, 1000).count, 1);
  EXPECT_EQ(rounds_of_steps(thorough, 30'000).steps, 30'000);
  EXPECT_EQ(rounds_of_steps(thorough, 30'000).count, 1);
  EXPECT_EQ(rounds_of_steps(thorough, 180'000).steps, 60'000);
  EXPECT_EQ(rounds_of_steps(thorough, 180'000).count, 3);
  EXPECT_EQ(rounds_of_steps(thorough, 180'000).patience, 3);  // all of them
  EXPECT_EQ(rounds_of_steps(thorough, 180'000, 1024).count, 3);
  EXPECT_EQ(rounds_of_steps(brief, 1000).steps, 1000);
  EXPECT_EQ(rounds_of_steps(brief, 30'000).steps, 15'000);
  EXPECT_EQ(rounds_of_steps(brief, 30'000).count, 2);
  EXPECT_EQ(rounds_of_steps(brief, 180'000).steps, 15'000);
  EXPECT_EQ(rounds_of_steps(brief, 180'000).count, 12);
}

TEST(ImprovementSchedule, SaysWhichChainsARoundHasForAnyNumberOfSteps) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1000, 64), make_table("b", 1000, 64)}, 2, 1 << 30));
  for (const auto schedule : {ImprovementSchedule::thorough, ImprovementSchedule::brief}) {
    for (const std::int64_t steps : {100, 16'000, 61'000}) {
      PlannerOptions options = planner_options(1.0, steps);
      options.improvement = schedule;
      const SearchStats stats = NeuroShardPlanner().plan(simulator, options).stats;
      ASSERT_FALSE(stats.rounds.empty());
      for (const ImprovementRoundStats& round : stats.rounds) {
        Chains kinds;
        for (const ChainStats& chain : round.chains) kinds.push_back(chain.kind);
        EXPECT_EQ(kinds, local_search_options(schedule).chains) << steps;
      }
    }
  }
}

TEST(ImprovementSchedule, IsReadBackByName) {
  for (const auto schedule : {ImprovementSchedule::thorough, ImprovementSchedule::brief}) {
    EXPECT_EQ(improvement_schedule_from_string(to_string(schedule)), schedule);
  }
  EXPECT_EQ(improvement_schedule_from_string("short"), std::nullopt);
}

RC_GTEST_PROP(LocalSearchProperty, RoundsThatEndByWorkAreTheSameOnAnyNumberOfThreads, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  Search search;
  search.options.round_ms = 0.05;
  search.options.chains = *rc::gen::elementOf(kChains);
  search.budget.steps = 0;
  search.budget.nominal_ms = 0.4;
  const PlanningResult result = search.improve(simulator, fit.plan);
  const PlanningResult other = search.improve(simulator, fit.plan, 3);
  RC_ASSERT(other.plan.shards == result.plan.shards);
  RC_ASSERT(other.stats.head_evaluations == result.stats.head_evaluations);
}

TEST(LocalSearch, WithoutStepsThePlanStays) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1000, 64), make_table("b", 1000, 64)}, 2, 1 << 30));
  const ShardingPlan plan{{{0, 0, 64, 0}, {1, 0, 64, 0}}};
  EXPECT_EQ(Search(200, 0).improve(simulator, plan).plan.shards, plan.shards);
  Search late;
  late.budget.deadline = std::chrono::steady_clock::now();
  EXPECT_EQ(late.improve(simulator, plan).plan.shards, plan.shards);
  EXPECT_EQ(Search(200).improve(simulator, plan).plan.shards.size(), 2u);
}

TEST(LocalSearch, EndsAfterRoundsWithoutGain) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("a", 1000, 64), make_table("b", 1000, 64)}, 2, 1 << 30));
  const ShardingPlan best{{{0, 0, 64, 0}, {1, 0, 64, 1}}};
  Search search;
  search.budget.steps = 0;
  search.options.round_ms = 0.5;
  search.budget.nominal_ms = 10.0;
  EXPECT_EQ(search.improve(simulator, best).stats.rounds.size(), 5u) << "half of ten";
  search.options.least_round_gain = -1.0;  // whatever happens is a gain
  EXPECT_EQ(search.improve(simulator, best).stats.rounds.size(), 10u);
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
  ASSERT_LT(simulator.cost(even).cost_ms, 0.7 * simulator.cost(plan).cost_ms);
  for (const Chains& chains : kChains) {
    Search search(10'000);
    search.options.chains = chains;
    EXPECT_LE(search.improve(simulator, plan).predicted.cost_ms, simulator.cost(even).cost_ms);
  }
}

TEST(LocalSearch, CutsUnevenlyWhereThatIsBest) {
  // One table on two devices, one of which has room for a quarter of it. A batch so large that the
  // cut pays: the objective includes a tenth of the mean device's work.
  Task task = one_host_task({make_table("a", 1'000'000, 64, 10.0)}, 2, std::int64_t{1} << 30);
  task.batch_size = 65'536;
  task.topology.memory_bytes[1] = 64'000'000;
  const Simulator simulator = make_simulator(task);
  for (const Chains& chains : kChains) {
    Search search;
    search.options.chains = chains;
    const PlanningResult result = search.improve(simulator, {{{0, 0, 64, 0}}});
    EXPECT_THAT(violations(task, result.plan), testing::IsEmpty());
    EXPECT_EQ(result.plan.shards, (std::vector<Shard>{{0, 0, 48, 0}, {0, 48, 16, 1}}))
        << static_cast<int>(chains.back());
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
  for (const Chains& chains : kChains) {
    Search search(5'000);
    search.options.chains = chains;
    const PlanningResult result = search.improve(simulator, plan);
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
  Search search;
  search.options.chains = kChains[2];
  const PlanningResult result = search.improve(simulator, plan);
  EXPECT_THAT(violations(task, result.plan), testing::IsEmpty());
  EXPECT_LT(result.predicted.cost_ms, simulator.cost(plan).cost_ms);
  EXPECT_LE(result.predicted.cost_ms, simulator.cost(even).cost_ms);
}

}  // namespace
}  // namespace neuroshard
