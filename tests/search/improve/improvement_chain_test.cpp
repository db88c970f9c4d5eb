// A chain of the improvement ends at the best plan that it met, whatever it accepted after that.
#include "neuroshard/search/improve/improvement_chain.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "neuroshard/search/improve/annealing.h"
#include "neuroshard/search/improve/large_neighbourhood.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/slices/sliced_task.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

struct Outcome {
  ShardingPlan plan;
  double best_cost_ms = 0.0;
  ChainStats stats;
};

Outcome run_chain(ChainKind kind, const Simulator& simulator, const ShardingPlan& plan,
                  std::int64_t steps, std::uint64_t seed, double last_temperature = 1e-3) {
  LocalSearchOptions options;
  options.last_temperature = last_temperature;
  const ChainSettings settings{options, steps, std::numeric_limits<double>::infinity(),
                               seed,    {},    {}};
  const auto make = kind == ChainKind::annealing ? make_annealing : make_large_neighbourhood;
  const std::unique_ptr<ImprovementChain> chain = make(simulator, plan, settings, 0);
  chain->run();
  return {chain->assignment().plan(), chain->best_cost(), chain->stats()};
}

RC_GTEST_PROP(ImprovementChainProperty, ThePlanThatItReturnsHasItsBestCost, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  if (simulator.task().topology.world_size == 1) return;  // nowhere to take anything
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  const ChainKind kind = *rc::gen::element(ChainKind::annealing, ChainKind::large_neighbourhood);
  const Outcome found =
      run_chain(kind, simulator, fit.plan, 300, *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(violations(simulator.task(), found.plan).empty());
  RC_ASSERT(simulator.cost(found.plan).cost_ms == found.best_cost_ms);
  RC_ASSERT(found.best_cost_ms == found.stats.best_cost_ms);
  RC_ASSERT(found.best_cost_ms <= simulator.cost(fit.plan).cost_ms);
}

/// A chain that may also cut the rows of a plan's tables in other ways.
struct SlicedOutcome {
  ShardingPlan plan;  ///< of the slices
  ShardingPlan original;
  double best_cost_ms = 0.0;
};

SlicedOutcome run_sliced_chain(const SlicedTask& sliced, std::int64_t steps, std::uint64_t seed) {
  const WayChances chances(sliced.simulator(), sliced.plan(), sliced.slicings(), {});
  const LocalSearchOptions options;
  const ChainSettings settings{.options = options,
                               .steps = steps,
                               .nominal_ms = std::numeric_limits<double>::infinity(),
                               .seed = seed,
                               .deadline = {},
                               .slicings = sliced.slicings(),
                               .chances = &chances};
  const std::unique_ptr<ImprovementChain> chain =
      make_large_neighbourhood(sliced.simulator(), sliced.plan(), settings, 0);
  chain->run();
  ShardingPlan plan = chain->assignment().plan();
  ShardingPlan original = sliced.original(plan);
  return {std::move(plan), std::move(original), chain->best_cost()};
}

RC_GTEST_PROP(ImprovementChainProperty, SoItHasWhereRowsAreCutInOtherWays, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  if (simulator.task().topology.world_size == 1) return;
  const MemoryFit fit = fit_memory(simulator.task());
  RC_PRE(fit.feasible);
  const SlicedTask sliced(simulator, fit.plan, 8);
  const SlicedOutcome found = run_sliced_chain(sliced, 300, *rc::gen::arbitrary<std::uint64_t>());
  RC_CLASSIFY(found.original.has_row_slices(), "rows");
  RC_ASSERT(violations(simulator.task(), found.original).empty());
  RC_ASSERT(sliced.simulator().cost(found.plan).cost_ms == found.best_cost_ms);
  RC_ASSERT(found.best_cost_ms <= sliced.simulator().cost(sliced.plan()).cost_ms);
}

/// One table has nearly all lookups: only slices of its rows share them.
TEST(ImprovementChain, CutsRowsAndHasItsBestCost) {
  std::vector<Table> tables{make_table("hot", 1'000'000, 16, 200.0)};
  ShardingPlan plan{{{0, 0, 16, 0}}};
  for (int t = 1; t < 4; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 10'000, 16, 1.0));
    plan.shards.push_back({t, 0, 16, t});
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, std::int64_t{1} << 34));
  const SlicedTask sliced(simulator, plan, 4);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const SlicedOutcome found = run_sliced_chain(sliced, 2000, seed);
    EXPECT_GT(found.original.num_row_slices(), 1);
    EXPECT_EQ(sliced.simulator().cost(found.plan).cost_ms, found.best_cost_ms);
    EXPECT_NEAR(simulator.cost(found.original).cost_ms, found.best_cost_ms,
                1e-9 * found.best_cost_ms);
    EXPECT_LT(found.best_cost_ms, 0.9 * simulator.cost(plan).cost_ms);
  }
}

/// So hot that it leaves the best plan at once: what it returns is not where it was last.
TEST(ImprovementChain, GoesBackFromWhereItWasLast) {
  std::vector<Table> tables;
  ShardingPlan best;
  for (int t = 0; t < 8; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1'000'000, 64, 10.0));
    best.shards.push_back({t, 0, 64, t % 4});
  }
  const Simulator simulator = make_simulator(one_host_task(tables, 4, std::int64_t{1} << 34));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Outcome found = run_chain(ChainKind::annealing, simulator, best, 200, seed, 0.1);
    EXPECT_GT(found.stats.steps_accepted, 10);
    EXPECT_EQ(simulator.cost(found.plan).cost_ms, found.best_cost_ms);
    EXPECT_LE(found.best_cost_ms, simulator.cost(best).cost_ms);
  }
}

}  // namespace
}  // namespace neuroshard
