// The clock stops the search wherever it is: the best plan so far, valid and with its price, or a
// clear word that there is none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/beam/first_lists/cheapest_cuts.h"
#include "neuroshard/search/beam/first_lists/even_pieces.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/improve/way_chances.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/memory_needs.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/replicas/replica_moves.h"
#include "neuroshard/search/slices/sliced_task.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

StopClock clock_in(double seconds) {
  return StopClock(StopClock::Clock::now() + std::chrono::duration_cast<StopClock::Clock::duration>(
                                                 std::chrono::duration<double>(seconds)));
}

PlannerOptions limited(double seconds) {
  PlannerOptions options;
  options.time_limit_seconds = seconds;
  options.stop_by_clock = true;
  return options;
}

/// One of each kind.
std::vector<std::unique_ptr<Planner>> planners_with_a_clock() {
  std::vector<std::unique_ptr<Planner>> planners;
  for (const char* name : {"neuroshard", "beam-search", "random", "greedy-size", "torchrec-like"}) {
    planners.push_back(find_planner(name));
  }
  return planners;
}

Task many_tables(int count, int num_devices, std::int64_t memory_bytes) {
  std::vector<Table> tables;
  for (int t = 0; t < count; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1000 + 10 * t, 128, 1.0 + t % 7));
  }
  return one_host_task(tables, num_devices, memory_bytes);
}

RC_GTEST_PROP(TimeLimitProperty, AValidPlanWithItsPriceOrNone, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  // From before the first placement to after the last step.
  const double seconds = 1e-5 * *rc::gen::inRange(1, 3'000);
  for (const auto& planner : planners_with_a_clock()) {
    try {
      const PlanningResult result = planner->plan(simulator, limited(seconds));
      RC_ASSERT(violations(simulator.task(), result.plan).empty());
      RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
    } catch (const InfeasibleError& error) {
      const std::string text = error.what();
      RC_ASSERT(text.starts_with("no plan f") || text.starts_with(planner->name()));
    }
  }
}

TEST(TimeLimit, WithoutAPlanSaysSo) {
  const Simulator simulator = make_simulator(many_tables(100, 4, std::int64_t{1} << 34));
  for (const auto& planner : planners_with_a_clock()) {
    PlannerOptions options = limited(0.01);
    options.deadline = StopClock::Clock::now();
    try {
      (void)planner->plan(simulator, options);
      FAIL() << planner->name();
    } catch (const InfeasibleError& error) {
      EXPECT_STREQ(error.what(), "no plan found within 10 ms");
    }
  }
}

TEST(TimeLimit, IsNoneUnlessTheClockMayStop) {
  const Simulator simulator = make_simulator(many_tables(20, 4, std::int64_t{1} << 34));
  PlannerOptions options = limited(1e-9);
  options.stop_by_clock = false;
  EXPECT_FALSE(NeuroShardPlanner().plan(simulator, options).stats.stopped_by_clock);
}

TEST(TimeLimit, WithTimeForAllThePlanIsTheSame) {
  const Simulator simulator = make_simulator(many_tables(20, 4, std::int64_t{1} << 34));
  PlannerOptions options = limited(0.05);
  options.deadline = StopClock::Clock::now() + std::chrono::hours(1);
  const PlanningResult result = NeuroShardPlanner().plan(simulator, options);
  EXPECT_FALSE(result.stats.stopped_by_clock);
  options.stop_by_clock = false;
  EXPECT_EQ(NeuroShardPlanner().plan(simulator, options).plan.shards, result.plan.shards);
}

TEST(TimeLimit, EndsStepsWithoutEnd) {
  const Simulator simulator = make_simulator(many_tables(30, 4, std::int64_t{1} << 34));
  PlannerOptions options;
  options.cuts = kColumnsAlone;  // one improvement, which has all steps
  options.steps = std::numeric_limits<std::int64_t>::max();
  options.stop_by_clock = true;
  options.deadline = StopClock::Clock::now() + std::chrono::seconds(2);
  const PlanningResult result = NeuroShardPlanner().plan(simulator, options);
  EXPECT_FALSE(result.stats.rounds.empty());
}

TEST(TimeLimit, ReachesEveryLongLoop) {
  const Task task = many_tables(300, 8, std::int64_t{1} << 34);
  const StopClock over = clock_in(0.0);
  EXPECT_THROW((void)fit_memory(task, true, over), TimeIsOver);
  EXPECT_THROW(
      (void)Simulator(
          task, testing_tasks::analytic_compute(),
          std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch")), over),
      TimeIsOver);
  const Simulator simulator = make_simulator(task);
  EXPECT_THROW((void)lower_bound_ms(simulator, {}, 1e9, over), TimeIsOver);
  EXPECT_THROW((void)beam_search(simulator, {}, 1, over), TimeIsOver);
  PieceCatalog catalog(simulator);
  constexpr std::int64_t kMany = 100'000;
  EXPECT_THROW((void)cheapest_lists(simulator, catalog, true, kMany, over), TimeIsOver);
  EXPECT_THROW((void)even_lists(simulator, catalog, true, kMany, kMany, over), TimeIsOver);
  SearchStats stats;
  const ShardingPlan fits = fit_memory(task).plan;
  EXPECT_THROW((void)SlicedTask(simulator, fits, 8, over), TimeIsOver);
  const SlicedTask sliced(simulator, fits, 8);
  EXPECT_THROW((void)WayChances(sliced.simulator(), sliced.plan(), sliced.slicings(), over),
               TimeIsOver);
  EXPECT_EQ(with_replica_moves(simulator, fits, true, stats, over).shards, fits.shards);
  EXPECT_TRUE(stats.stopped_by_clock);
}

TEST(TimeLimit, NamesWhatIsKnownAboutTooLittleMemory) {
  const Task task = many_tables(300, 8, 1 << 20);
  EXPECT_THAT(explain_infeasible(task).what(), HasSubstr("would do"));
  const std::string brief = explain_infeasible(task, false, clock_in(0.0)).what();
  EXPECT_THAT(brief, HasSubstr("no plan fits into memory: "));
  EXPECT_THAT(brief, Not(HasSubstr("would do")));
}

}  // namespace
}  // namespace neuroshard
