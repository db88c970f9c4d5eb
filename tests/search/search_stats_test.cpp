// Statistics of a search: levels and rounds add up to the totals, and record the course of the
// plan's cost.
#include "neuroshard/search/search_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "neuroshard/search/first_plan.h"
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

/// The totals that follow from levels and rounds.
SearchStats summed(const SearchStats& stats) {
  SearchStats sum;
  for (const BeamLevelStats& level : stats.levels) {
    sum.states_expanded += level.states_tried;
    sum.plans_priced += level.plans_priced;
    sum.head_evaluations += level.head_evaluations;
    sum.pieces_encoded = level.pieces_encoded;
  }
  for (const ImprovementRoundStats& round : stats.rounds) {
    for (const ChainStats& chain : round.chains) {
      sum.plans_priced += chain.plans_priced;
      sum.head_evaluations += chain.head_evaluations;
      sum.pieces_encoded += chain.pieces_encoded;
    }
  }
  return sum;
}

void check_sums(const SearchStats& stats) {
  const SearchStats sum = summed(stats);
  RC_ASSERT(stats.states_expanded == sum.states_expanded);
  RC_ASSERT(stats.plans_priced == sum.plans_priced);
  RC_ASSERT(stats.head_evaluations == sum.head_evaluations);
  RC_ASSERT(stats.pieces_encoded == sum.pieces_encoded);
}

RC_GTEST_PROP(SearchStatsProperty, LevelsAndRoundsAddUpToTheTotals, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  PlannerOptions options;
  options.steps = 200;
  options.pessimism = *rc::gen::element(0.0, 0.5);
  const SearchStats searched = BeamSearchPlanner().plan(simulator, options).stats;
  check_sums(searched);
  RC_ASSERT(searched.rounds.empty());
  options.cuts = kColumnsAlone;
  const SearchStats improved = NeuroShardPlanner().plan(simulator, options).stats;
  check_sums(improved);
  RC_ASSERT(improved.levels == searched.levels);
}

RC_GTEST_PROP(SearchStatsProperty, LevelsAndRoundsDoNotDependOnTheNumberOfThreads, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  PlannerOptions options;
  options.steps = 200;
  options.num_threads = 1;
  const SearchStats one = NeuroShardPlanner().plan(simulator, options).stats;
  options.num_threads = 3;
  const SearchStats three = NeuroShardPlanner().plan(simulator, options).stats;
  RC_ASSERT(one.levels == three.levels);
  RC_ASSERT(one.rounds == three.rounds);
}

RC_GTEST_PROP(SearchStatsProperty, ALevelsBestStateIsThatOfItsCounts, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  const PlanningResult result = BeamSearchPlanner().plan(simulator, {});
  RC_ASSERT(!result.stats.levels.empty());
  double least = std::numeric_limits<double>::infinity();
  std::int64_t encoded = 0;
  for (const BeamLevelStats& level : result.stats.levels) {
    RC_ASSERT(level.states_tried > 0);
    RC_ASSERT(level.states_feasible <= level.states_tried);
    RC_ASSERT(level.best_cost_ms.has_value() == (level.states_feasible > 0));
    RC_ASSERT((level.unplaced_bytes == 0) == (level.states_feasible > 0));
    RC_ASSERT(level.pieces_encoded >= encoded);
    encoded = level.pieces_encoded;
    if (level.best_cost_ms) least = std::min(least, *level.best_cost_ms);
  }
  // A plan that fits is known beforehand, and taken where it is cheaper than all levels.
  RC_ASSERT(result.predicted.cost_ms <= least);
}

RC_GTEST_PROP(SearchStatsProperty, AReturnedPlanCostsTheBestThatItsChainsMet, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  LocalSearchOptions options;
  options.round_steps = 300;
  LocalSearchBudget budget;
  budget.steps = 4 * options.round_steps;
  budget.seed = *rc::gen::arbitrary<std::uint64_t>();
  ThreadPool pool(1);
  const PlanningResult result = improve_plan(simulator, fit.plan, options, budget, pool);
  double cost_ms = simulator.cost(fit.plan).cost_ms;
  for (const ImprovementRoundStats& round : result.stats.rounds) {
    RC_ASSERT(round.cost_before_ms == cost_ms);
    RC_ASSERT(round.chains.size() == 2u);
    for (std::size_t i = 0; i < round.chains.size(); ++i) {
      const ChainStats& chain = round.chains[i];
      RC_ASSERT(chain.best_cost_ms <= round.cost_before_ms);
      RC_ASSERT(chain.best_cost_ms >= round.cost_after_ms);
      RC_ASSERT(chain.steps <= options.round_steps);
      RC_ASSERT(chain.steps_accepted <= chain.plans_priced);
      RC_ASSERT(chain.plans_priced <= chain.steps);
      if (round.best_chain == i) RC_ASSERT(chain.best_cost_ms == round.cost_after_ms);
    }
    RC_ASSERT(round.best_chain.has_value() == (round.cost_after_ms < round.cost_before_ms));
    cost_ms = round.cost_after_ms;
  }
  RC_ASSERT(result.predicted.cost_ms == cost_ms);
  RC_ASSERT(simulator.cost(result.plan).cost_ms == cost_ms);
}

void expect_same_work(const SearchStats& one, const SearchStats& other) {
  EXPECT_EQ(one.plans_priced, other.plans_priced);
  EXPECT_EQ(one.states_expanded, other.states_expanded);
  EXPECT_EQ(one.head_evaluations, other.head_evaluations);
  EXPECT_EQ(one.pieces_encoded, other.pieces_encoded);
}

TEST(SearchStats, TheSearchWithColumnsAloneCountsOnce) {
  Task task = one_host_task({make_table("tiny", 3, 256), make_table("large", 1'000'000, 128, 20.0)},
                            2, std::int64_t{1} << 40);
  task.batch_size = 65'536;
  const Simulator simulator = make_simulator(task);
  PlannerOptions options;
  options.num_threads = 1;
  const SearchStats of_columns = beam_search(simulator, {}, 1).stats;
  const FirstPlan first = first_plan(simulator, {}, options);
  ASSERT_FALSE(first.best.plan.replicated_tables.empty());
  ASSERT_EQ(first.of_fewer_cuts.size(), 2u);
  EXPECT_EQ(first.head_evaluations_of_columns, of_columns.head_evaluations);
  EXPECT_GT(first.best.stats.head_evaluations, of_columns.head_evaluations);
  // The same search without copies is two parts of it, one of which is counted with the best plan.
  options.cuts.replicas = false;
  SearchStats without_copies = first.of_fewer_cuts[0].result.stats;
  add_work(of_columns, without_copies);
  expect_same_work(without_copies, first_plan(simulator, {}, options).best.stats);
  expect_same_work(first.of_fewer_cuts[1].result.stats, {});
}

TEST(SearchStats, SayWhatARoundDid) {
  std::vector<Table> tables;
  ShardingPlan plan;
  for (int t = 0; t < 8; ++t) {
    tables.push_back(make_table("t" + std::to_string(t), 1'000'000, 64, 10.0));
    plan.shards.push_back({t, 0, 64, 0});
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, std::int64_t{1} << 34));
  LocalSearchBudget budget;
  budget.steps = 1000;
  ThreadPool pool(1);
  const SearchStats stats = improve_plan(simulator, plan, {}, budget, pool).stats;
  ASSERT_EQ(stats.rounds.size(), 1u);
  const ImprovementRoundStats& round = stats.rounds[0];
  EXPECT_EQ(round.cost_before_ms, simulator.cost(plan).cost_ms);
  EXPECT_LT(round.cost_after_ms, round.cost_before_ms);
  ASSERT_EQ(round.chains.size(), 2u);
  EXPECT_EQ(round.chains[0].kind, ChainKind::annealing);
  EXPECT_EQ(round.chains[0].steps, 1000);
  EXPECT_EQ(round.chains[1].kind, ChainKind::large_neighbourhood);
  EXPECT_GT(round.chains[1].steps, 100);
  for (const ChainStats& chain : round.chains) {
    EXPECT_GT(chain.steps_accepted, 10);
    EXPECT_GT(chain.head_evaluations, chain.plans_priced);
    EXPECT_GT(chain.pieces_encoded, 0);
  }
}

}  // namespace
}  // namespace neuroshard
