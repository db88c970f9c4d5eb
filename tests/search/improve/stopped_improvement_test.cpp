// What an improvement must not lose: plans that were found before the clock stopped it, that it was
// stopped, steps that were asked for, and slices of rows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "neuroshard/search/first_plan.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/replan/replanner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

/// More tables than are placed between two looks at the clock.
constexpr int kTablesOfLooks = 80;

Task task_of_looks() {
  std::vector<Table> tables;
  for (int t = 0; t < kTablesOfLooks; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 10'000, 64, 10.0));
  }
  return one_host_task(std::move(tables), 4, std::int64_t{1} << 34);
}

/// The first tables, all on one device.
ShardingPlan plan_on_one_device(int num_tables) {
  ShardingPlan plan;
  for (int t = 0; t < num_tables; ++t) plan.shards.push_back({t, 0, 64, 0});
  return plan;
}

/// The first chain has no end but the deadline, after which the second one cannot begin.
TEST(StoppedImprovement, KeepsWhatTheChainsThatBeganHaveFound) {
  const Simulator simulator = make_simulator(task_of_looks());
  const ShardingPlan plan = plan_on_one_device(kTablesOfLooks);
  LocalSearchOptions options;
  options.round_steps = 1'000'000'000;
  LocalSearchBudget budget;
  budget.steps = options.round_steps;
  ThreadPool pool(1);
  budget.deadline = StopClock::Clock::now() + std::chrono::milliseconds(200);
  const PlanningResult result = improve_plan(simulator, plan, options, budget, pool);
  EXPECT_THAT(violations(simulator.task(), result.plan), IsEmpty());
  EXPECT_LT(result.predicted.cost_ms, simulator.cost(plan).cost_ms);
  ASSERT_EQ(result.stats.rounds.size(), 1u);
  const ImprovementRoundStats& round = result.stats.rounds.front();
  ASSERT_EQ(round.chains.size(), 1u);
  EXPECT_EQ(round.chains.front().kind, ChainKind::annealing);
  EXPECT_EQ(round.best_chain.value(), 0u);
}

TEST(StoppedImprovement, ThePlanThatItBeginsWithIsAPlanInTime) {
  const Simulator simulator = make_simulator(task_of_looks());
  ShardingPlan plan = plan_on_one_device(kTablesOfLooks - 1);
  plan.replicated_tables = {kTablesOfLooks - 1};
  PlannerOptions options;
  options.num_threads = 1;
  options.stop_by_clock = true;
  options.deadline = StopClock::Clock::now();
  const PlanningResult result = improved_from(simulator, plan, options);
  EXPECT_EQ(result.plan.shards, plan.shards);
  EXPECT_EQ(result.plan.replicated_tables, plan.replicated_tables);
  EXPECT_EQ(result.predicted.cost_ms, simulator.cost(plan).cost_ms);
  EXPECT_TRUE(result.stats.stopped_by_clock);
}

TEST(ImprovedFrom, SlicesOfRowsStayAsTheyAre) {
  Task task = one_host_task(
      {make_table("sliced", 1'000'000, 64, 100.0), make_table("whole", 1'000, 64, 10.0)}, 4,
      std::int64_t{1} << 34);
  task.batch_size = 16'384;
  const Simulator simulator = make_simulator(task);
  const ShardingPlan start{
      {{0, 0, 64, 0, 0, 400'000}, {0, 0, 64, 0, 400'000, 600'000}, {1, 0, 64, 0}}};
  ASSERT_THAT(violations(simulator.task(), start), IsEmpty());
  PlannerOptions options;
  options.steps = 2'000;
  options.num_threads = 1;
  const PlanningResult result = improved_from(simulator, start, options);
  EXPECT_THAT(violations(simulator.task(), result.plan), IsEmpty());
  EXPECT_LT(result.predicted.cost_ms, simulator.cost(start).cost_ms);
  std::set<std::pair<std::int64_t, std::int64_t>> slices;
  for (const Shard& shard : result.plan.shards) {
    if (shard.table == 0) slices.emplace(shard.row_offset, shard.num_rows);
  }
  EXPECT_THAT(slices, ElementsAre(Pair(0, 400'000), Pair(400'000, 600'000)));
}

/// Time enough for all that comes before the place where it is to be over.
constexpr std::chrono::seconds kTimeBeforeStop{2};

/// What there is to tell of a planning: levels of the first plan, improvements that begin.
bool is_told(PlanningStage stage, const PlanningProgress& progress) {
  return progress.stage == stage && (stage != PlanningStage::improvement || progress.done == 0);
}

/// A planning that sleeps until its time is over where it is told of a stage for the n-th time.
PlanningResult planned_until(const Simulator& simulator, PlannerOptions options,
                             PlanningStage stage, int number) {
  const StopClock::Clock::time_point end = StopClock::Clock::now() + kTimeBeforeStop;
  int told = 0;
  const PlanningObserver sleep_till_end = [&](const PlanningProgress& progress) {
    if (is_told(stage, progress) && ++told == number) std::this_thread::sleep_until(end);
  };
  options.observer = &sleep_till_end;
  options.stop_by_clock = true;
  options.deadline = end;
  return NeuroShardPlanner().plan(simulator, options);
}

/// Lookups of columns take time, and nothing else.
class ComputeOfLookups final : public AnalyticComputeModel {
 public:
  ComputeOfLookups() : AnalyticComputeModel(find_compute_hardware("a100-40gb")) {}

  void encode(const TableStatistics& table, std::int64_t num_columns,
              const OperatorSettings& settings, std::span<double> contribution) const override {
    const double lookups = static_cast<double>(settings.batch_size) * table.pooling_factor;
    contribution[0] = 1.0;
    contribution[1] = 1e-8 * lookups * static_cast<double>(num_columns);
    round_to_grid(contribution, settings.grid);
  }
};

/// All-reduces take 1.5 ms.
class SlowAllReduces final : public AnalyticCommunicationModel {
 public:
  SlowAllReduces() : AnalyticCommunicationModel(find_interconnect("a100-nvswitch")) {}

  [[nodiscard]] double all_reduce_ms(const Topology& /*topology*/, double bytes) const override {
    return bytes > 0.0 ? 1.5 : 0.0;
  }
};

/// Of many tables, copies are chosen before anything is cut. Those of the hot table gain much then:
/// 4.2 ms on one device become 1.05 ms on each, and 1.5 ms of all-reduce. But pieces of its columns
/// gain more, 1.05 ms on each device. The vast table has room in two slices of rows alone, so that
/// there is no plan with columns alone.
Simulator simulator_of_misleading_copies() {
  std::vector<Table> tables{make_table("hot", 200'000, 64, 400.0),
                            make_table("vast", 400'000'000, 4, 0.01)};
  tables[0].allow.rows = false;
  tables[1].allow.replicas = false;
  tables[1].min_shard_rows = 200'000'000;
  for (int t = 0; t < 33; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1'000, 4));
    tables.back().allow = {.columns = false, .rows = false, .replicas = false};
  }
  Task task = one_host_task(std::move(tables), 4, std::int64_t{1} << 32);
  task.batch_size = 16'384;
  return {std::move(task), std::make_shared<ComputeOfLookups>(),
          std::make_shared<SlowAllReduces>()};
}

PlannerOptions options_of_one_improvement() {
  PlannerOptions options;
  options.improvement = ImprovementSchedule::brief;  // one first plan, whose improvement is one
  options.steps = 2'000;
  options.num_threads = 1;
  return options;
}

/// A cheaper plan of fewer cuts is found, and then the clock comes: while it is searched further,
/// or before the dearer one is improved.
TEST(StoppedPlanner, TakesTheCheapestPlanThatWasFound) {
  const Simulator simulator = simulator_of_misleading_copies();
  PlannerOptions options = options_of_one_improvement();
  int levels = 0;
  const PlanningObserver count = [&](const PlanningProgress& progress) {
    if (is_told(PlanningStage::first_plan, progress)) ++levels;
  };
  options.observer = &count;
  const FirstPlan first = first_plan(simulator, {}, options);
  ASSERT_THAT(first.best.plan.replicated_tables, ElementsAre(0));
  ASSERT_EQ(first.of_fewer_cuts.size(), 1u);
  const PlanningResult& cheaper = first.of_fewer_cuts.front().result;
  ASSERT_THAT(cheaper.plan.replicated_tables, IsEmpty());
  ASSERT_LT(cheaper.predicted.cost_ms, 0.8 * first.best.predicted.cost_ms);
  for (const PlanningStage stage : {PlanningStage::first_plan, PlanningStage::improvement}) {
    SCOPED_TRACE(static_cast<int>(stage));
    const int number = stage == PlanningStage::first_plan ? levels : 1;
    const PlanningResult result = planned_until(simulator, options, stage, number);
    EXPECT_THAT(violations(simulator.task(), result.plan), IsEmpty());
    EXPECT_THAT(result.plan.replicated_tables, IsEmpty());
    EXPECT_LT(result.predicted.cost_ms, 0.8 * first.best.predicted.cost_ms);
    EXPECT_EQ(result.predicted.cost_ms, simulator.cost(result.plan).cost_ms);
    EXPECT_TRUE(result.stats.stopped_by_clock);
  }
}

/// Slices of the table save most of the time.
Simulator simulator_of_hot_rows() {
  Task task = one_host_task({make_table("hot", 1'000'000, 64, 100.0), make_table("b", 1'000, 64)},
                            4, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  return make_simulator(task);
}

constexpr Cuts kSlicesOfRows{.columns = false, .rows = true, .replicas = false};

TEST(StoppedPlanner, SaysSoWhereAPlanWasNotTaken) {
  PlannerOptions options = options_of_one_improvement();
  options.cuts = kSlicesOfRows;
  // The second improvement is that of the plan without slices.
  const PlanningResult result =
      planned_until(simulator_of_hot_rows(), options, PlanningStage::improvement, 2);
  EXPECT_TRUE(result.plan.has_row_slices());
  EXPECT_TRUE(result.stats.stopped_by_clock);
}

/// Of the first chain, over all rounds that led to the plan.
std::int64_t steps_of_rounds(const SearchStats& stats) {
  std::int64_t steps = 0;
  for (const ImprovementRoundStats& round : stats.rounds) steps += round.chains.front().steps;
  return steps;
}

TEST(FewSteps, AreAllMadeWhereThereAreTwoFirstPlans) {
  const Simulator simulator = simulator_of_hot_rows();
  NeuroShardOptions of_annealing;
  of_annealing.improvement.emplace();
  of_annealing.improvement->chains = {ChainKind::annealing};
  of_annealing.improvement->chains_of_slicings = {ChainKind::annealing};
  const NeuroShardPlanner planner(of_annealing);
  PlannerOptions options;
  options.cuts = kSlicesOfRows;
  options.num_threads = 1;
  const auto steps_made = [&](std::int64_t steps) {
    options.steps = steps;
    const PlanningResult result = planner.plan(simulator, options);
    EXPECT_TRUE(result.plan.has_row_slices());
    return steps_of_rounds(result.stats);
  };
  for (const std::int64_t steps : {1, 2, 3}) EXPECT_EQ(steps_made(steps), steps);
  // A quarter of them for each of the plans, of which one is left, and the rest.
  EXPECT_EQ(steps_made(8), 2 + 4);
}

}  // namespace
}  // namespace neuroshard
