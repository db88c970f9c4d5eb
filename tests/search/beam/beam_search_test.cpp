// The search: valid plans for any task, the same ones on any number of threads, priced by the
// simulator, and never worse than its start.
#include "neuroshard/search/beam/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/replicas/replica_choice.h"
#include "tests/cost/arbitrary_communication.h"
#include "tests/io/io_test_util.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_networks::random_communication_network;
using testing_networks::random_model;
using testing_networks::two_clusters;
using testing_tasks::arbitrary_compute;
using testing_tasks::conditioned_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;
using testing_tasks::with_conditions;
using testing_tasks::with_row_orders;

PlannerOptions on_threads(int num_threads) {
  PlannerOptions options;
  options.num_threads = num_threads;
  return options;
}

PlanningResult search(const Simulator& simulator, int num_threads = 1,
                      const BeamSearchOptions& options = {}) {
  return BeamSearchPlanner(options).plan(simulator, on_threads(num_threads));
}

/// The greedy grid search over whole tables; infinite if it finds nothing.
double uncut_greedy_cost(const Simulator& simulator) {
  PieceCatalog catalog(simulator);
  std::vector<PieceType> pieces;
  for (std::size_t t = 0; t < simulator.task().tables.size(); ++t) {
    pieces.push_back(catalog.add(static_cast<int>(t), simulator.task().tables[t].embedding_dim));
  }
  std::sort(pieces.begin(), pieces.end(),
            [&](PieceType a, PieceType b) { return catalog.goes_first(a, b); });
  return GreedyGridSearch(simulator, catalog, {}).search(pieces).cost_ms;
}

void expect_same(const PlanCost& a, const PlanCost& b) {
  RC_ASSERT(a.cost_ms == b.cost_ms);
  RC_ASSERT(a.devices.size() == b.devices.size());
  for (std::size_t d = 0; d < a.devices.size(); ++d) {
    RC_ASSERT(a.devices[d].compute_ms == b.devices[d].compute_ms);
    RC_ASSERT(a.devices[d].forward_comm_ms == b.devices[d].forward_comm_ms);
    RC_ASSERT(a.devices[d].backward_comm_ms == b.devices[d].backward_comm_ms);
    RC_ASSERT(a.devices[d].memory_bytes == b.devices[d].memory_bytes);
    RC_ASSERT(a.devices[d].num_columns == b.devices[d].num_columns);
  }
}

RC_GTEST_PROP(BeamSearchProperty, PlansAreValidPricedAndNoWorseThanTheUncutGreedy, ()) {
  const Simulator simulator = make_simulator(conditioned_task(), arbitrary_compute());
  const MemoryFit fit = fit_memory(simulator.task());
  RC_CLASSIFY(fit.feasible, "feasible");
  try {
    const PlanningResult result = search(simulator);
    RC_ASSERT(violations(simulator.task(), result.plan).empty());
    expect_same(result.predicted, simulator.cost(result.plan));
    RC_ASSERT(result.predicted.cost_ms <= uncut_greedy_cost(simulator));
    RC_ASSERT(result.predicted.cost_ms <= simulator.cost(fit.plan).cost_ms);
    ShardingPlan sorted = result.plan;
    sort_shards(sorted);
    RC_ASSERT(sorted.shards == result.plan.shards);
  } catch (const InfeasibleError& error) {
    RC_ASSERT(!fit.feasible);
    RC_ASSERT(std::string_view(error.what()).starts_with("no plan fits into memory: "));
  }
}

/// Enough tables for the search to use its threads.
Task task_for_threads() {
  Task task = task_of_any_tightness();
  const std::size_t given = task.tables.size();
  while (task.tables.size() < 26) {
    Table table = task.tables[task.tables.size() % given];
    table.name = fmt::format("t{}", task.tables.size());
    table.num_embeddings += static_cast<std::int64_t>(task.tables.size());
    task.tables.push_back(table);
  }
  const auto factor = static_cast<std::int64_t>(26 / given + 1);
  for (std::int64_t& bytes : task.topology.memory_bytes) bytes *= factor;
  return task;
}

/// Analytic, or learned: that one keeps something of the last call for each thread.
Simulator simulator_of(const Task& task, const std::shared_ptr<const ComputeCostModel>& compute) {
  if (*rc::gen::arbitrary<bool>()) return make_simulator(task, compute);
  const auto cluster = *rc::gen::element<std::size_t>(0, 1);
  return {task, compute,
          std::make_shared<NeuralCommunicationModel>(
              random_communication_network(*rc::gen::inRange(0, 50)), two_clusters(), cluster)};
}

RC_GTEST_PROP(BeamSearchProperty, NeitherPlanNorCountsDependOnTheNumberOfThreads, ()) {
  const Simulator simulator = simulator_of(task_for_threads(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  BeamSearchOptions options;
  options.num_levels = 3;
  options.beam_width = *rc::gen::element(1, 3);
  options.rows = *rc::gen::arbitrary<bool>();
  const PlanningResult first = search(simulator, 1, options);
  for (const int threads : {2, 4, 5}) {
    const PlanningResult other = search(simulator, threads, options);
    RC_ASSERT(other.plan.shards == first.plan.shards);
    expect_same(other.predicted, first.predicted);
    RC_ASSERT(other.stats.plans_priced == first.stats.plans_priced);
    RC_ASSERT(other.stats.head_evaluations == first.stats.head_evaluations);
    RC_ASSERT(other.stats.states_expanded == first.stats.states_expanded);
    RC_ASSERT(other.stats.pieces_encoded == first.stats.pieces_encoded);
  }
}

/// The same prices, but no bound on them that could spare one.
class Unbounded final : public CommunicationCostModel {
 public:
  explicit Unbounded(const CommunicationCostModel& model) : model_(model) {}
  std::string name() const override { return model_.name(); }
  void forward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
               std::span<const double> start_ms, std::span<double> forward_ms) const override {
    model_.forward(topology, batch_size, columns, start_ms, forward_ms);
  }
  void backward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
                std::span<double> backward_ms) const override {
    model_.backward(topology, batch_size, columns, backward_ms);
  }
  double all_reduce_ms(const Topology& topology, double bytes) const override {
    return model_.all_reduce_ms(topology, bytes);
  }
  double partial_sums_ms(double bytes) const override { return model_.partial_sums_ms(bytes); }
  double floor_ms(const Topology&, std::int64_t, double) const override { return kFarBelow; }
  double least_cost_ms(const Topology&, std::int64_t, std::span<const double>,
                       std::span<const double>) const override {
    return kFarBelow;
  }
  std::vector<std::string> outside_range(const Task& task) const override {
    return model_.outside_range(task);
  }

 private:
  static constexpr double kFarBelow = -1e30;  // and finite: other costs are added to it
  const CommunicationCostModel& model_;
};

/// Some of the task's tables that may be copied.
std::vector<int> some_tables(const Task& task) {
  std::vector<int> tables;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const bool is_copied = *rc::gen::inRange(0, 3) == 0;
    if (is_copied && task.tables[t].allow.replicas) tables.push_back(static_cast<int>(t));
  }
  return tables;
}

/// Half of the time with conditions on the tables, likewise with rows in an order, likewise with
/// tables that lie on some devices alone.
Task any_task_for_threads() {
  Task task = task_for_threads();
  if (*rc::gen::arbitrary<bool>()) task = with_conditions(std::move(task));
  if (*rc::gen::arbitrary<bool>()) task = with_row_orders(std::move(task));
  if (*rc::gen::arbitrary<bool>()) return task;
  for (std::size_t t = 0; t < task.tables.size(); t += 5) {
    task.tables[t].devices = {*rc::gen::inRange(0, task.topology.world_size)};
  }
  return task;
}

/// With columns alone or rows too, and without or with copies, whose costs every device has; nor
/// would places have changed it that are taken over from limit to limit and from list to list.
RC_GTEST_PROP(BeamSearchProperty, WhatIsNotPricedWouldNotHaveChangedThePlan, ()) {
  const auto compute = arbitrary_compute();
  const Simulator simulator = simulator_of(any_task_for_threads(), compute);
  const Simulator unbounded(simulator.task(), compute,
                            std::make_shared<Unbounded>(simulator.communication()));
  BeamSearchOptions options;
  options.num_levels = 4;
  options.beam_width = *rc::gen::element(1, 2, 3, 20);
  options.rows = *rc::gen::arbitrary<bool>();
  const std::vector<int> replicated = some_tables(simulator.task());
  PlanningResult spared;
  try {
    spared = plan_with_replicas_of(simulator, replicated, options, on_threads(1), {});
  } catch (const InfeasibleError&) {
    RC_DISCARD("there is too little room, or the copies leave too little");
  }
  const PlanningResult all =
      plan_with_replicas_of(unbounded, replicated, options, on_threads(1), {});
  options.greedy.take_over = false;
  const PlanningResult anew =
      plan_with_replicas_of(unbounded, replicated, options, on_threads(1), {});
  RC_ASSERT(spared.plan.shards == anew.plan.shards);
  expect_same(spared.predicted, anew.predicted);
  RC_TAG(replicated.empty() ? "no copies" : "copies");
  RC_ASSERT(spared.plan.shards == all.plan.shards);
  expect_same(spared.predicted, all.predicted);
  RC_ASSERT(spared.stats.plans_priced <= all.stats.plans_priced);
  RC_ASSERT(spared.stats.head_evaluations <= all.stats.head_evaluations);
  RC_ASSERT(spared.stats.states_expanded == all.stats.states_expanded);
  RC_ASSERT(spared.stats.pieces_encoded == all.stats.pieces_encoded);
}

/// As copies are compared where tables are many: by the first lists alone, against the best so far.
RC_GTEST_PROP(BeamSearchProperty, AFirstPlanThatIsWorthItIsTheSame, ()) {
  const Simulator simulator = simulator_of(any_task_for_threads(), arbitrary_compute());
  BeamSearchOptions options;
  options.num_levels = 0;
  options.beam_width = *rc::gen::element(1, 3);
  options.rows = true;
  const std::vector<int> replicated = some_tables(simulator.task());
  const auto plan = [&] {
    return plan_with_replicas_of(simulator, replicated, options, on_threads(1), {});
  };
  PlanningResult best;
  try {
    best = plan();
  } catch (const InfeasibleError&) {
    RC_DISCARD("there is too little room, or the copies leave too little");
  }
  // Slices of a device that are neighbours cost another sum than the one shard that they become.
  if (best.stats.levels.empty()) RC_DISCARD("all tables are copied");
  const double placed_ms = best.stats.levels.front().best_cost_ms.value_or(0.0);
  options.worth_ms =
      std::max(placed_ms, best.predicted.cost_ms) * *rc::gen::element(1.0001, 1.05, 1.5);
  const PlanningResult limited = plan();
  RC_ASSERT(limited.plan.shards == best.plan.shards);
  expect_same(limited.predicted, best.predicted);
  RC_ASSERT(limited.stats.head_evaluations <= best.stats.head_evaluations);
}

/// Every cut of rows adds to the sum over all devices: few lists of a level are placed.
TEST(BeamSearch, ListsThatMustCostTooMuchAreNotPlaced) {
  std::vector<Table> tables;
  for (int t = 0; t < 20; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 100'000 + t, 64, 10.0 + t));
  }
  const Task task = one_host_task(tables, 4, std::int64_t{1} << 40);
  const auto compute = random_model(ComputeArchitecture::bounded_loads, 3);
  const Simulator simulator = make_simulator(task, compute);
  const Simulator unbounded(task, compute, std::make_shared<Unbounded>(simulator.communication()));
  BeamSearchOptions options;
  options.rows = true;
  const PlanningResult spared = search(simulator, 1, options);
  const PlanningResult all = search(unbounded, 1, options);
  EXPECT_EQ(spared.plan.shards, all.plan.shards);
  EXPECT_EQ(spared.stats.states_expanded, all.stats.states_expanded);
  EXPECT_LT(spared.stats.head_evaluations, all.stats.head_evaluations / 2);
}

RC_GTEST_PROP(BeamSearchProperty, ACostDoesNotDependOnTheOrderOfTablesAndEqualDevices, ()) {
  Task task = task_of_any_tightness();
  task.topology.local_world_size = task.topology.world_size;
  std::fill(task.topology.memory_bytes.begin(), task.topology.memory_bytes.end(),
            std::int64_t{1} << 40);
  const auto compute = arbitrary_compute();
  const PlanningResult result = search(make_simulator(task, compute));

  Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<int> new_table(task.tables.size());
  std::iota(new_table.begin(), new_table.end(), 0);
  random.shuffle(new_table);
  std::vector<int> new_device(task.topology.world_size);
  std::iota(new_device.begin(), new_device.end(), 0);
  random.shuffle(new_device);
  Task reordered = task;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    reordered.tables[new_table[t]] = task.tables[t];
  }
  ShardingPlan same = result.plan;
  for (Shard& shard : same.shards) {
    shard.table = new_table[shard.table];
    shard.device = new_device[shard.device];
  }
  RC_ASSERT(make_simulator(reordered, compute).cost(same).cost_ms == result.predicted.cost_ms);
}

RC_GTEST_PROP(BeamSearchProperty, HugeTasksEndTheirLevelsEarly, ()) {
  const Simulator simulator = make_simulator(task_of_any_tightness(), arbitrary_compute());
  RC_PRE(fit_memory(simulator.task()).feasible);
  BeamSearchOptions bounded;
  bounded.max_pieces_tried = 1;  // the first lists are placed in any case
  BeamSearchOptions none;
  none.num_levels = 0;
  const PlanningResult result = search(simulator, 1, bounded);
  RC_ASSERT(violations(simulator.task(), result.plan).empty());
  const std::int64_t tried = search(simulator, 1, none).stats.states_expanded;
  RC_ASSERT(result.stats.states_expanded == tried);
}

struct Corner {
  const char* name;
  Task task;
};

std::vector<Corner> corners() {
  constexpr std::int64_t kAmple = std::int64_t{1} << 50;
  std::vector<Table> equal;
  for (int t = 0; t < 30; ++t) equal.push_back(make_table(fmt::format("t{}", t), 1000, 64));
  std::vector<Corner> all{
      {"one table on one device", one_host_task({make_table("a", 10, 64)}, 1, kAmple)},
      {"a single number", one_host_task({make_table("a", 1, 1)}, 1, 4)},
      {"one narrow table on many devices", one_host_task({make_table("a", 10, 4)}, 64, kAmple)},
      {"more devices than columns", one_host_task({make_table("a", 10, 16)}, 128, kAmple)},
      {"a table that cannot be cut", one_host_task({make_table("a", 10, 127)}, 8, kAmple)},
      {"odd dimensions",
       one_host_task({make_table("a", 9, 1), make_table("b", 9, 6), make_table("c", 9, 255)}, 3,
                     kAmple)},
      {"equal tables", one_host_task(equal, 7, kAmple)},
      {"the largest table there is",
       one_host_task({make_table("a", kMaxEmbeddings, 1024, kMaxPoolingFactor)}, 4,
                     std::int64_t{1} << 60, Optimizer::rowwise_adagrad)},
      {"the widest table there is",
       one_host_task({make_table("a", 1, kMaxEmbeddingDim)}, 4, kAmple)},
      {"memory filled to the last byte",
       one_host_task({make_table("a", 100, 16)}, 4, 100 * (4 * 4 + 4),
                     Optimizer::rowwise_adagrad)}};
  all.push_back({"devices of different memory",
                 one_host_task({make_table("a", 100, 64), make_table("b", 100, 32)}, 3, 1)});
  all.back().task.topology.memory_bytes = {1600, 30'000, 8000};
  return all;
}

TEST(BeamSearch, CornersHaveValidPlans) {
  for (const Corner& corner : corners()) {
    SCOPED_TRACE(corner.name);
    const Simulator simulator = make_simulator(corner.task);
    const PlanningResult result = search(simulator);
    EXPECT_THAT(violations(corner.task, result.plan), testing::IsEmpty());
    EXPECT_EQ(result.predicted.cost_ms, simulator.cost(result.plan).cost_ms);
    EXPECT_GT(result.predicted.cost_ms, 0.0);
    PlannerOptions options;
    options.steps = 200;
    const PlanningResult improved = NeuroShardPlanner().plan(simulator, options);
    EXPECT_THAT(violations(corner.task, improved.plan), testing::IsEmpty());
    EXPECT_LE(improved.predicted.cost_ms, result.predicted.cost_ms);
  }
}

TEST(BeamSearch, CutsWhatIsSlowerThanTheRest) {
  const Task task = one_host_task(
      {make_table("slow", 1'000'000, 128, 50.0), make_table("quick", 1000, 16)}, 4, 1 << 30);
  const Simulator simulator = make_simulator(task);
  const PlanningResult result = search(simulator);
  EXPECT_GT(result.plan.shards.size(), 4u);
  EXPECT_LT(result.predicted.cost_ms, 0.75 * uncut_greedy_cost(simulator));
}

TEST(BeamSearch, SaysInNumbersWhatCannotFit) {
  const Task task = one_host_task({make_table("a", 1 << 20, 64), make_table("b", 1 << 20, 64)}, 2,
                                  std::int64_t{128} << 20);
  try {
    (void)search(make_simulator(task));
    FAIL() << "a plan of twice the memory";
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(error.exit_code(), 1);
    EXPECT_STREQ(
        error.what(),
        "no plan fits into memory: the tables need 512.00 MiB, 2 devices have 256.00 MiB, "
        "256.00 MiB too little; 2 devices of 256.00 MiB (256MiB) would do, or 4 devices of "
        "128.00 MiB");
  }
}

TEST(BeamSearch, CountsWhatItDid) {
  const Simulator simulator = make_simulator(one_host_task(
      {make_table("a", 1000, 64), make_table("b", 1000, 32), make_table("c", 10, 8)}, 2, 1 << 30));
  const SearchStats stats = search(simulator).stats;
  EXPECT_GT(stats.states_expanded, 1);
  EXPECT_GE(stats.plans_priced, std::ssize(stats.levels));  // all fit; few need a price
  EXPECT_GT(stats.head_evaluations, stats.plans_priced);
  EXPECT_GE(stats.pieces_encoded, 3);
  EXPECT_GT(stats.wall_ms, 0.0);
  EXPECT_EQ(BeamSearchPlanner().name(), "beam-search");
}

/// Whatever the columns, every all-to-all takes `ms`.
class ConstantCommunication : public CommunicationCostModel {
 public:
  explicit ConstantCommunication(double ms) : ms_(ms) {}
  std::string name() const override { return "constant"; }
  void forward(const Topology&, std::int64_t, std::span<const double>, std::span<const double>,
               std::span<double> forward_ms) const override {
    std::fill(forward_ms.begin(), forward_ms.end(), ms_);
  }
  void backward(const Topology&, std::int64_t, std::span<const double>,
                std::span<double> backward_ms) const override {
    std::fill(backward_ms.begin(), backward_ms.end(), ms_);
  }
  double all_reduce_ms(const Topology&, double) const override { return ms_; }
  double floor_ms(const Topology&, std::int64_t, double) const override { return 2.0 * ms_; }
  std::vector<std::string> outside_range(const Task&) const override { return {}; }

 private:
  double ms_;
};

TEST(BeamSearch, CostsThatAreNoneAreRefused) {
  const Task task = one_host_task({make_table("a", 100, 16), make_table("b", 10, 8)}, 2, 1'000'000);
  const auto refusal = [&](double ms) {
    const Simulator simulator(task, testing_tasks::analytic_compute(),
                              std::make_shared<ConstantCommunication>(ms));
    return input_error([&] { (void)NeuroShardPlanner().plan(simulator, on_threads(2)); });
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(kInfinity),
            "constant: cost of device 0's backward all-to-all: expected 0 ms, or between 1e-30 "
            "and 1e30 ms, got inf");
  EXPECT_THAT(refusal(std::numeric_limits<double>::quiet_NaN()), testing::HasSubstr("constant: "));
  EXPECT_THAT(refusal(1e31), testing::HasSubstr("got 1e+31"));
  EXPECT_THAT(refusal(9e29), testing::HasSubstr("cost of the plan"));  // a sum of such times
  EXPECT_THAT(refusal(-1.0), testing::HasSubstr("got -1"));
}

}  // namespace
}  // namespace neuroshard
