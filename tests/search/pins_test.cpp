// Pinned tables: every planner's plans keep to the pins, a plan is found where there is one, and
// what does not fit is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/table_pins.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/bound/lower_bound.h"
#include "neuroshard/search/groups/bundled_task.h"
#include "neuroshard/search/improve/local_search.h"
#include "neuroshard/search/memory/exact_memory_fit.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/memory_needs.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/piece_catalog.h"
#include "neuroshard/search/slices/sliced_task.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_tasks::arbitrary_compute;
using testing_tasks::arbitrary_task;
using testing_tasks::conditioned_task;
using testing_tasks::kGiB;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;
using testing_tasks::with_conditions;
using testing_tasks::with_pins;
using testing_tasks::with_row_orders;

PlannerOptions brief_options(const Cuts& cuts = {}) {
  PlannerOptions options;
  options.cuts = cuts;
  options.steps = 500;
  return options;
}

RC_GTEST_PROP(PinsProperty, EveryPlannersPlansKeepToThem, ()) {
  Task task = *arbitrary_task(*rc::gen::element(0.9, 1.5, 3.0, 10.0));
  if (*rc::gen::arbitrary<bool>()) task = with_conditions(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  task = with_pins(std::move(task));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  const Cuts cuts{*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                  *rc::gen::arbitrary<bool>()};
  for (const auto& planner : make_planners()) {
    try {
      const PlanningResult result = planner->plan(simulator, brief_options(cuts));
      RC_CLASSIFY(true, std::string(planner->name()));
      RC_ASSERT(violations(task, result.plan).empty());
      RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
    } catch (const InfeasibleError&) {
      RC_CLASSIFY(true, std::string(planner->name()) + ": none");
    }
  }
}

/// Plans of the neuroshard planner and of the beam search; none where there is no plan.
std::optional<PlanningResult> planned_with_pins(const Planner& planner,
                                                const Simulator& simulator) {
  try {
    return planner.plan(simulator, brief_options());
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

RC_GTEST_PROP(PinsProperty, WithMemoryToSpareThereIsAPlan, ()) {
  Task task = with_pins(*arbitrary_task(1.0));
  const std::int64_t all =
      std::accumulate(task.tables.begin(), task.tables.end(), std::int64_t{0},
                      [&](std::int64_t sum, const Table& t) {
                        return sum + shard_bytes(t, t.embedding_dim, task.optimizer);
                      });
  for (std::int64_t& bytes : task.topology.memory_bytes) bytes = all;
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  RC_ASSERT(planned_with_pins(NeuroShardPlanner(), simulator).has_value());
  RC_ASSERT(planned_with_pins(BeamSearchPlanner(), simulator).has_value());
}

/// Whether some way of placing whole tables is a valid plan.
bool whole_tables_fit(const Task& task) {
  ShardingPlan plan;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    plan.shards.push_back({static_cast<int>(t), 0, task.tables[t].embedding_dim, 0});
  }
  while (!violations(task, plan).empty()) {
    std::size_t t = 0;
    while (t < plan.shards.size() && ++plan.shards[t].device == task.topology.world_size) {
      plan.shards[t++].device = 0;
    }
    if (t == plan.shards.size()) return false;
  }
  return true;
}

/// Two to five tables on two or three devices, in tight memory.
Task small_task() {
  Task task = task_of_any_tightness();
  task.topology.world_size = task.topology.local_world_size = *rc::gen::inRange(2, 4);
  const std::size_t most = *rc::gen::inRange<std::size_t>(2, 6);
  if (task.tables.size() > most) task.tables.resize(most);
  task.topology.memory_bytes =
      testing_tasks::arbitrary_memory(task, *rc::gen::element(1.0, 1.5, 2.0, 3.0));
  return with_pins(std::move(task));
}

RC_GTEST_PROP(PinsProperty, ASmallTasksPlanIsFoundIfThereIsOne, ()) {
  Task task = small_task();
  const bool whole = *rc::gen::arbitrary<bool>();
  if (whole) task.allow = {false, false, false};
  const Simulator simulator = make_simulator(task);
  const ExactFit exact = fit_exactly(simulator.task(), 100'000);
  const bool fits = whole_tables_fit(task);
  RC_CLASSIFY(fits, "whole tables fit");
  RC_CLASSIFY(exact.answer == FitAnswer::fits, "fits");
  if (fits) RC_ASSERT(exact.answer != FitAnswer::does_not_fit);
  if (whole) RC_ASSERT(fits == (exact.answer == FitAnswer::fits));
  if (exact.answer == FitAnswer::fits) {
    RC_ASSERT(violations(task, {exact.shards, {}}).empty());
    RC_ASSERT(fit_memory(simulator.task()).feasible);
    RC_ASSERT(planned_with_pins(NeuroShardPlanner(), simulator).has_value());
    RC_ASSERT(planned_with_pins(BeamSearchPlanner(), simulator).has_value());
  } else if (exact.answer == FitAnswer::does_not_fit) {
    RC_ASSERT(!fit_memory(simulator.task()).feasible);
  }
}

RC_GTEST_PROP(PinsProperty, NamingAllDevicesChangesNoPlan, ()) {
  const Task task = conditioned_task();
  Task named = task;
  for (Table& table : named.tables) {
    table.devices.resize(task.topology.world_size);
    std::iota(table.devices.begin(), table.devices.end(), 0);
  }
  const auto compute = arbitrary_compute();
  for (const auto& planner : make_planners()) {
    std::optional<PlanningResult> without =
        planned_with_pins(*planner, make_simulator(task, compute));
    std::optional<PlanningResult> with =
        planned_with_pins(*planner, make_simulator(named, compute));
    RC_ASSERT(without.has_value() == with.has_value());
    if (!without) continue;
    RC_ASSERT(without->plan.shards == with->plan.shards);
    RC_ASSERT(without->plan.replicated_tables == with->plan.replicated_tables);
  }
}

RC_GTEST_PROP(PinsProperty, ABundleIsTheSumOfItsTables, ()) {
  Task task = with_pins(with_row_orders(with_conditions(*arbitrary_task(10.0))));
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  const BundledTask bundled(simulator.task());
  const Simulator of_bundles(simulator, bundled.task(), bundled.members());
  ShardingPlan plan;
  for (std::size_t t = 0; t < bundled.task().tables.size(); ++t) {
    const Table& table = bundled.task().tables[t];
    const int device = *rc::gen::inRange(0, task.topology.world_size);
    plan.shards.push_back({static_cast<int>(t), 0, table.embedding_dim, device});
  }
  const PlanCost there = of_bundles.cost(plan);
  const PlanCost here = simulator.cost(bundled.original(plan));
  RC_ASSERT(here.cost_ms == there.cost_ms);
  for (std::size_t d = 0; d < here.devices.size(); ++d) {
    RC_ASSERT(here.devices[d].compute_ms == there.devices[d].compute_ms);
    RC_ASSERT(here.devices[d].num_columns == there.devices[d].num_columns);
    RC_ASSERT(here.devices[d].memory_bytes == there.devices[d].memory_bytes);
  }
}

/// What the search adds up for a bundle is what its tables cost.
TEST(Pins, TheCatalogHasAllOfABundle) {
  Task task = one_host_task({make_table("a", 1000, 64, 4.0), make_table("b", 1000, 32, 4.0),
                             make_table("c", 1000, 64, 4.0)},
                            2, std::int64_t{1} << 30);
  task.tables[2].same_device_as = "a";
  const Simulator simulator = make_simulator(task);
  const BundledTask bundled(task);
  const Simulator of_bundles(simulator, bundled.task(), bundled.members());
  PieceCatalog catalog(of_bundles);
  const PieceType bundle = catalog.add(0, bundled.task().tables[0].embedding_dim, 1);
  std::vector<double> sum(catalog.state_size());
  std::vector<double> one(catalog.state_size());
  for (const int table : {0, 2}) {
    simulator.encode(table, task.tables[table].embedding_dim, one);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  EXPECT_TRUE(std::ranges::equal(catalog.contribution(bundle), sum));
}

/// Six equal tables, three of them together: three on each device.
TEST(Pins, AGroupWeighsAsMuchAsItsTables) {
  std::vector<Table> tables;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    tables.push_back(make_table(name, 100'000, 64, 20.0));
  }
  Task task = one_host_task(tables, 2, std::int64_t{1} << 32);
  task.batch_size = 16'384;
  task.allow = {false, false, false};
  task.tables[1].same_device_as = task.tables[2].same_device_as = "a";
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan = NeuroShardPlanner().plan(simulator, brief_options()).plan;
  std::vector<int> held(2);
  for (const Shard& shard : plan.shards) ++held[static_cast<std::size_t>(shard.device)];
  EXPECT_THAT(held, ElementsAre(3, 3));
}

/// "a" and "b" stay together; "c" has most of the lookups.
Task group_and_rest() {
  Task task = one_host_task({make_table("a", 1000, 64, 4.0), make_table("b", 1000, 32, 4.0),
                             make_table("c", 1000, 64, 40.0), make_table("d", 1000, 64, 4.0)},
                            4, std::int64_t{1} << 30);
  task.batch_size = 16'384;
  task.tables[1].same_device_as = "a";
  return task;
}

TEST(Pins, AGroupMovesAsOne) {
  const Task task = group_and_rest();
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan = NeuroShardPlanner().plan(simulator, brief_options()).plan;
  EXPECT_THAT(violations(task, plan), IsEmpty());
  const BundledTask bundled(task);
  EXPECT_THAT(bundled.members(), ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
  EXPECT_EQ(bundled.task().tables[0].name, "a");
}

TEST(Pins, ABundleOfMoreThanAnyDeviceIsCountedWithoutOverflow) {
  Task task = group_and_rest();
  for (Table& table : task.tables) {
    table.num_embeddings = kMaxEmbeddings;
    table.embedding_dim = kMaxEmbeddingDim;
    table.same_device_as = table.name == "a" ? "" : "a";
  }
  EXPECT_FALSE(fit_memory(task).feasible);
  EXPECT_THROW((void)NeuroShardPlanner().plan(make_simulator(task), brief_options()),
               InfeasibleError);
}

TEST(Pins, ATableThatOnlyRowsFitIsPlannedBesideAGroup) {
  Task task = group_and_rest();
  task.tables[2] = make_table("c", std::int64_t{1} << 27, 4);
  task.tables[3].embedding_dim = 4;
  task.topology.memory_bytes.assign(4, std::int64_t{3} << 29);
  const ShardingPlan plan = NeuroShardPlanner().plan(make_simulator(task), brief_options()).plan;
  EXPECT_THAT(violations(task, plan), IsEmpty());
  EXPECT_TRUE(plan.has_row_slices());
}

TEST(Pins, ReplicasAreOfTablesThatMayLieEverywhere) {
  std::vector<Table> tables;
  for (int t = 0; t < 12; ++t) tables.push_back(make_table(std::to_string(t), 4, 64));
  Task task = one_host_task(tables, 4, std::int64_t{1} << 34);
  task.batch_size = 16'384;
  task.topology.local_world_size = 1;
  task.tables[2].devices = {1, 2};
  task.tables[7].same_device_as = "5";
  const Simulator simulator(
      task, testing_tasks::analytic_compute(),
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("ethernet-25g")));
  const ShardingPlan plan = NeuroShardPlanner().plan(simulator, brief_options()).plan;
  EXPECT_THAT(violations(task, plan), IsEmpty());
  EXPECT_THAT(plan.replicated_tables, Not(IsEmpty()));
  EXPECT_THAT(plan.replicated_tables, Each(AnyOf(0, 1, 3, 4, 6, 8, 9, 10, 11)));
}

TEST(Pins, SlicesKeepThem) {
  Task task = group_and_rest();
  task.tables[2].devices = {2, 0};
  task.tables[0].devices = {3};
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{
      {{0, 0, 64, 3}, {1, 0, 32, 3}, {2, 0, 64, 0, 0, 500}, {2, 0, 64, 2, 500, 500}, {3, 0, 64, 1}},
      {}};
  ASSERT_THAT(violations(task, plan), IsEmpty());
  const SlicedTask sliced(simulator, plan);
  const std::vector<Table>& tables = sliced.simulator().task().tables;
  EXPECT_THAT(tables[0].devices, ElementsAre(3));
  EXPECT_EQ(tables[1].same_device_as, tables[0].name);
  EXPECT_THAT(tables[2].devices, ElementsAre(2, 0));
  EXPECT_THAT(tables[3].devices, ElementsAre(2, 0));
  EXPECT_THAT(violations(sliced.simulator().task(), sliced.plan()), IsEmpty());
}

TEST(Pins, TheLowerBoundIsOneOfPinnedPlansToo) {
  Task task = group_and_rest();
  task.tables[2].devices = {2};
  const auto compute = testing_networks::random_model(ComputeArchitecture::bounded_loads, 7);
  const Simulator simulator = make_simulator(task, compute);
  const PlanningResult result =
      NeuroShardPlanner().plan(simulator, brief_options({true, false, false}));
  EXPECT_THAT(violations(task, result.plan), IsEmpty());
  const double bound_ms = lower_bound_ms(simulator, kColumnsAlone);
  EXPECT_GT(bound_ms, 0.0);
  EXPECT_LE(bound_ms, result.predicted.cost_ms);
}

std::string refusal_of_pins(const Task& task) {
  try {
    (void)NeuroShardPlanner().plan(make_simulator(task), brief_options());
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(error.exit_code(), 1);
    return error.what();
  }
  return "no error";
}

/// 1 GiB for every 16 columns.
Table gibibytes(const char* name, std::int64_t columns) {
  return make_table(name, 1 << 24, columns);
}

TEST(Pins, WhatTheDevicesOfATableLackIsSaid) {
  Task task = one_host_task({gibibytes("a", 64), gibibytes("b", 16)}, 4, 3 * kGiB);
  EXPECT_EQ(refusal_of_pins(task), "no error");
  task.tables[0].devices = {2};
  EXPECT_EQ(refusal_of_pins(task),
            "no plan fits into memory: table \"a\" needs 4.00 GiB, and device 2, on which alone it "
            "may lie, has 3.00 GiB; 4 devices of 4.00 GiB (4096MiB) would do, and no number of "
            "devices of 3.00 GiB");
  task.tables[0].devices = {2, 3};
  EXPECT_EQ(refusal_of_pins(task), "no error");
  task.tables[0].allow = {false, false, false};
  EXPECT_THAT(
      refusal_of_pins(task),
      HasSubstr("the narrowest piece of table \"a\" needs 4.00 GiB, and devices 2 and 3, on "
                "which alone it may lie, have at most 3.00 GiB; 4 devices of 4.00 GiB"));
}

TEST(Pins, WhatTheDevicesOfSeveralTablesLackIsSaid) {
  Task task = one_host_task({gibibytes("a", 32), gibibytes("b", 32), gibibytes("c", 32),
                             gibibytes("d", 32), gibibytes("e", 32)},
                            4, 4 * kGiB);
  task.tables[0].devices = {1};
  task.tables[1].devices = {1, 0};
  task.tables[2].devices = {0};
  task.tables[3].devices = {0};
  EXPECT_EQ(refusal_of_pins(task), "no error");
  task.tables[4].devices = {0, 1};
  EXPECT_THAT(
      refusal_of_pins(task),
      HasSubstr("tables \"a\", \"b\", \"c\" and 2 more need 10.00 GiB, and devices 0 and 1, "
                "on which alone they may lie, have 8.00 GiB; "));
}

TEST(Pins, WhatAGroupLacksIsSaid) {
  Task task =
      one_host_task({gibibytes("a", 32), gibibytes("b", 32), gibibytes("c", 32)}, 4, 5 * kGiB);
  task.tables[1].same_device_as = "a";
  EXPECT_EQ(refusal_of_pins(task), "no error");
  task.tables[2].same_device_as = "a";
  EXPECT_EQ(refusal_of_pins(task),
            "no plan fits into memory: tables \"a\", \"b\" and \"c\" stay together and need 6.00 "
            "GiB, and the largest device has 5.00 GiB; 4 devices of 6.00 GiB (6144MiB) would do, "
            "and no number of devices of 5.00 GiB");
  task.tables[2].devices = {3};
  EXPECT_THAT(refusal_of_pins(task),
              HasSubstr("tables \"a\", \"b\" and \"c\" need 6.00 GiB, and device 3, on which alone "
                        "they may lie, has 5.00 GiB; 4 devices of 6.00 GiB"));
  const MemoryNeeds needs = memory_needs(task);
  ASSERT_TRUE(needs.shortage.has_value());
  EXPECT_THAT(needs.shortage->tables, ElementsAre(0, 1, 2));
  EXPECT_THAT(needs.shortage->devices, ElementsAre(3));
}

TEST(Pins, WhatCannotBeDividedAmongItsDevicesIsNamed) {
  Task task =
      one_host_task({gibibytes("a", 48), gibibytes("b", 48), gibibytes("c", 48)}, 4, 5 * kGiB);
  task.allow = {false, false, false};
  for (Table& table : task.tables) table.devices = {1, 2};
  EXPECT_THAT(
      refusal_of_pins(task),
      HasSubstr("and no way to divide it among them was found with table \"c\" on devices 1 "
                "and 2; 4 devices of 6.00 GiB"));
}

RC_GTEST_PROP(PinsProperty, TheMemoryThatWouldDoDoes, ()) {
  Task task = with_pins(*arbitrary_task(*rc::gen::element(0.2, 0.5, 0.7)));
  RC_PRE(!fit_memory(task).feasible);
  const MemoryNeeds needs = memory_needs(task);
  RC_ASSERT(needs.sufficient_memory.has_value());
  Task larger = task;
  for (std::int64_t& bytes : larger.topology.memory_bytes) bytes = *needs.sufficient_memory;
  RC_ASSERT(fit_memory(larger).feasible);
  if (needs.sufficient_devices) {
    Task more = task;
    more.topology =
        testing_tasks::make_topology(*needs.sufficient_devices, 1, needs.largest_device);
    RC_ASSERT(fit_memory(more).feasible);
    validate(more);
  }
  RC_ASSERT(std::string(explain_infeasible(task).what()).find('\n') == std::string::npos);
}

TEST(Pins, ImprovementTakesPiecesWhereTheyMayLieOnly) {
  Task task = one_host_task({make_table("a", 1000, 64, 20.0), make_table("b", 1000, 64, 10.0),
                             make_table("c", 1000, 64, 5.0), make_table("d", 1000, 64, 5.0)},
                            4, std::int64_t{1} << 30);
  task.batch_size = 16'384;
  task.tables[0].devices = {0, 1};
  task.tables[1].devices = {0, 3};
  const Simulator simulator = make_simulator(task);
  const ShardingPlan plan{{{0, 0, 64, 0}, {1, 0, 64, 0}, {2, 0, 64, 0}, {3, 0, 64, 0}}, {}};
  for (const ChainKind kind : {ChainKind::annealing, ChainKind::large_neighbourhood}) {
    LocalSearchOptions options;
    options.chains = {kind};
    LocalSearchBudget budget;
    budget.steps = 5'000;
    ThreadPool pool(1);
    const PlanningResult result = improve_plan(simulator, plan, options, budget, pool);
    EXPECT_THAT(violations(task, result.plan), IsEmpty());
    EXPECT_LT(result.predicted.cost_ms, 0.8 * simulator.cost(plan).cost_ms);
  }
}

}  // namespace
}  // namespace neuroshard
