// TorchRec's sharding types: options, proposals, partition, constants that fit the models, and
// valid plans of any task. That they are TorchRec's: torchrec_plans_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/baselines/torchrec/enumeration.h"
#include "neuroshard/baselines/torchrec/fitted_constants.h"
#include "neuroshard/baselines/torchrec/greedy_partition.h"
#include "neuroshard/baselines/torchrec/proposals.h"
#include "neuroshard/baselines/torchrec/sharding_types_plan.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "tests/baselines/option_rows.h"
#include "tests/cost/analytic_simulator.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard::torchrec {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing_tasks::analytic;
using testing_tasks::arbitrary_task;
using testing_tasks::make_table;
using testing_tasks::make_topology;
using testing_tasks::with_conditions;

constexpr Cuts kAllCuts{};

Task task_on_hosts(std::vector<Table> tables, int devices, int per_host,
                   std::int64_t memory_bytes = std::int64_t{1} << 40) {
  Task task;
  task.batch_size = 512 * devices;
  task.tables = std::move(tables);
  task.topology = make_topology(devices, per_host, memory_bytes);
  return task;
}

std::vector<std::string> types_of(const std::vector<ShardingOption>& options) {
  std::vector<std::string> types;
  for (const ShardingOption& option : options) types.emplace_back(to_string(option.type));
  return types;
}

const ShardingOption& option_of(const std::vector<ShardingOption>& options, ShardingType type) {
  for (const ShardingOption& option : options) {
    if (option.type == type) return option;
  }
  throw std::logic_error("no such option");
}

// --- Options ---

TEST(ShardingTypes, EachDividesATableInItsWay) {
  const Task task = task_on_hosts({make_table("a", 10, 128)}, 8, 4);
  const std::vector<ShardingOption> options = enumerate(task, 32, {}).front();
  EXPECT_THAT(types_of(options),
              ElementsAre("data_parallel", "table_wise", "column_wise", "table_column_wise",
                          "row_wise", "table_row_wise", "grid_shard"));
  const Table& table = task.tables.front();
  EXPECT_THAT(rows_of(option_of(options, ShardingType::row_wise), table),
              ElementsAre(2, 2, 2, 2, 2, 0, 0, 0));
  EXPECT_THAT(rows_of(option_of(options, ShardingType::table_row_wise), table),
              ElementsAre(3, 3, 3, 1));
  const ShardingOption& grid = option_of(options, ShardingType::grid_shard);
  EXPECT_EQ(grid.num_shards, 16);
  const ShardRange range = grid.range(table, 7);
  EXPECT_EQ(range.row_offset, 9);
  EXPECT_EQ(range.num_rows, 1);
  EXPECT_EQ(range.column_offset, 32);
  EXPECT_EQ(range.num_columns, 32);
  EXPECT_EQ(grid.bytes(task, 7), 32 * 4);
  EXPECT_EQ(static_cast<std::int64_t>(grid.total_bytes), 10 * 128 * 4);
  EXPECT_EQ(grid.largest_bytes, 3 * 32 * 4);
  const ShardingOption& copies = option_of(options, ShardingType::data_parallel);
  EXPECT_EQ(static_cast<std::int64_t>(copies.total_bytes), 8 * 10 * 128 * 4);
}

TEST(ShardingTypes, ColumnsAreCutAtTheLeastDivisorThatIsAllowed) {
  const auto columns = [](std::int64_t dim, std::int64_t min_partition, std::int64_t of_table = 0) {
    Table table = make_table("a", 100, dim);
    table.min_shard_columns = of_table;
    const Task task = task_on_hosts({table}, 2, 2);
    const std::vector<ShardingOption> options = enumerate(task, min_partition, {}).front();
    return option_of(options, ShardingType::column_wise).columns_per_block;
  };
  EXPECT_EQ(columns(128, 32), 32);
  EXPECT_EQ(columns(100, 24), 100);  // 25 and 50 are no multiples of 4
  EXPECT_EQ(columns(100, 16), 20);
  EXPECT_EQ(columns(48, 32), 48);
  EXPECT_EQ(columns(256, 128), 128);
  EXPECT_EQ(columns(128, 32, 60), 64);
  EXPECT_EQ(columns(128, 32, 65), 128);
  EXPECT_EQ(columns(10, 4), 10);
}

TEST(ShardingTypes, AreThoseThatTaskTableAndDevicesAllow) {
  const auto types = [](Cuts cuts, int devices, int per_host, std::int64_t min_rows = 0) {
    Table table = make_table("a", 10, 128);
    table.min_shard_rows = min_rows;
    table.allow = cuts;
    return types_of(enumerate(task_on_hosts({table}, devices, per_host), 32, {}).front());
  };
  EXPECT_THAT(types({false, false, false}, 4, 4), ElementsAre("table_wise"));
  EXPECT_THAT(types({false, true, false}, 4, 4),
              ElementsAre("table_wise", "row_wise", "table_row_wise"));
  EXPECT_THAT(types({true, false, true}, 4, 4),
              ElementsAre("data_parallel", "table_wise", "column_wise", "table_column_wise"));
  EXPECT_THAT(types(kAllCuts, 4, 1),
              ElementsAre("data_parallel", "table_wise", "column_wise", "row_wise"));
  EXPECT_THAT(types(kAllCuts, 1, 1), ElementsAre("table_wise"));
  // On four devices the last slice has 1 row of 10, on two hosts' devices each has 5.
  EXPECT_THAT(types({false, true, false}, 4, 2, 5), ElementsAre("table_wise", "table_row_wise"));
  EXPECT_THAT(types({false, true, false}, 4, 2, 6), ElementsAre("table_wise"));
}

// --- Proposals ---

TEST(ShardingTypes, GridSearchProposesAllCombinationsOfFewTables) {
  const auto count = [](int tables) {
    std::vector<Table> of_task;
    for (int t = 0; t < tables; ++t) {
      of_task.push_back(make_table(fmt::format("t{}", t), 100, 64));
    }
    const SearchSpace space = enumerate(task_on_hosts(of_task, 4, 4), 32, {});
    GridSearchProposer proposer(space);
    std::set<Proposal> proposals;
    int number = 0;
    while (const Proposal* proposal = proposer.next()) {
      proposals.insert(*proposal);
      ++number;
    }
    EXPECT_EQ(proposals.size(), static_cast<std::size_t>(number));
    return number;
  };
  EXPECT_EQ(count(1), 7);
  EXPECT_EQ(count(3), 343);
  EXPECT_EQ(count(4), 2401);
  EXPECT_EQ(count(5), 0);  // 16,807
}

TEST(ShardingTypes, GreedyProposalsBeginWithTheCheapestAndMoveTheLargest) {
  const SearchSpace space = enumerate(
      task_on_hosts({make_table("small", 100, 64), make_table("large", 100'000, 64)}, 4, 4), 32,
      {});
  GreedyProposer proposer(space, OptionScore::slowest_shard);
  Proposal before = *proposer.next();
  for (std::size_t t = 0; t < 2; ++t) {
    for (const ShardingOption& option : space[t]) {
      EXPECT_LE(before[t]->perf.total(), option.perf.total());
    }
  }
  int number = 1;
  while (const Proposal* proposal = proposer.next()) {
    const std::size_t moved = (*proposal)[0] == before[0] ? 1 : 0;
    EXPECT_EQ((*proposal)[1 - moved], before[1 - moved]);
    EXPECT_GE((*proposal)[moved]->perf.total(), before[moved]->perf.total());
    before = *proposal;
    ++number;
  }
  EXPECT_EQ(number, 13);  // each table's six other options, one after the other
}

TEST(ShardingTypes, UniformProposalsAreOfTypesThatAllTablesHave) {
  Table whole = make_table("whole", 100, 64);
  whole.allow = {true, false, true};
  const SearchSpace space =
      enumerate(task_on_hosts({make_table("any", 100, 64), whole}, 4, 4), 32, {});
  UniformProposer proposer(space);
  std::vector<std::string> types;
  while (const Proposal* proposal = proposer.next()) {
    EXPECT_EQ((*proposal)[0]->type, (*proposal)[1]->type);
    types.emplace_back(to_string((*proposal)[0]->type));
  }
  EXPECT_THAT(types,
              ElementsAre("data_parallel", "table_wise", "column_wise", "table_column_wise"));
}

// --- Partition ---

/// The proposal that has each table in the given type.
Proposal proposal_of(const SearchSpace& space, const std::vector<ShardingType>& types) {
  Proposal proposal;
  for (std::size_t t = 0; t < types.size(); ++t) {
    proposal.push_back(&option_of(space[t], types[t]));
  }
  return proposal;
}

TEST(ShardingTypes, UniformOptionsComeFirstThenTheLargest) {
  const Task task = task_on_hosts({make_table("rows", 40, 64), make_table("small", 10, 64),
                                   make_table("large", 1000, 64), make_table("copy", 5, 64)},
                                  4, 2);
  const SearchSpace space = enumerate(task, 32, {});
  GreedyPartitioner partitioner(task);
  const Proposal proposal =
      proposal_of(space, {ShardingType::row_wise, ShardingType::table_wise,
                          ShardingType::table_row_wise, ShardingType::data_parallel});
  const std::optional<double> rating_ms = partitioner.place(proposal);
  ASSERT_TRUE(rating_ms);
  const ShardingPlan plan = partitioner.plan(proposal);
  EXPECT_TRUE(violations(task, plan).empty());
  EXPECT_THAT(plan.replicated_tables, ElementsAre(3));
  std::vector<int> devices;
  for (const Shard& shard : plan.shards) devices.push_back(shard.device);
  // Rows over all in order; the large table on the first host; the small one next to it.
  EXPECT_THAT(devices, ElementsAre(0, 1, 2, 3, 2, 0, 1));
  const double on_first = proposal[0]->perf.total() + proposal[3]->perf.total() +
                          std::max(proposal[1]->perf.total(), proposal[2]->perf.total());
  EXPECT_DOUBLE_EQ(*rating_ms, on_first);
}

TEST(ShardingTypes, HostsThatAreFullAreSkipped) {
  Task task = task_on_hosts({make_table("a", 1000, 64)}, 6, 2);
  task.topology.memory_bytes = {200'000, 100'000, 128'000, 128'000, 300'000, 300'000};
  const SearchSpace space = enumerate(task, 32, {});
  GreedyPartitioner partitioner(task);
  const auto devices = [&](ShardingType type) {
    const Proposal proposal = proposal_of(space, {type});
    std::vector<int> found;
    if (!partitioner.place(proposal)) return found;
    for (const Shard& shard : partitioner.plan(proposal).shards) found.push_back(shard.device);
    return found;
  };
  // 256,000 bytes; halves of 128,000; quarters of 64,000.
  EXPECT_THAT(devices(ShardingType::table_wise), ElementsAre(4));
  EXPECT_THAT(devices(ShardingType::table_row_wise), ElementsAre(2, 3));
  EXPECT_THAT(devices(ShardingType::table_column_wise), ElementsAre(2, 3));
  EXPECT_THAT(devices(ShardingType::column_wise), ElementsAre(0, 2));
  EXPECT_THAT(devices(ShardingType::grid_shard), ElementsAre(0, 1, 2, 3));
  task.topology.memory_bytes = {64'000, 64'000, 63'000, 64'000, 64'000, 64'000};
  // The first two hosts, and the next two, have a device that is too small.
  EXPECT_TRUE(devices(ShardingType::grid_shard).empty());
  EXPECT_EQ(partitioner.no_room().where, "no host's devices have");
  EXPECT_TRUE(devices(ShardingType::table_wise).empty());
  EXPECT_EQ(partitioner.no_room().where, "no device has");
  EXPECT_EQ(partitioner.no_room().bytes, 256'000.0);
  EXPECT_EQ(partitioner.no_room().most_room, 64'000.0);
  EXPECT_TRUE(devices(ShardingType::data_parallel).empty());
  EXPECT_EQ(partitioner.no_room().where, "device 0 has no");
}

TEST(ShardingTypes, AGridTakesHostsAgainIfTheyAreTooFew) {
  const Task task = task_on_hosts({make_table("a", 1000, 128)}, 4, 2);
  const SearchSpace space = enumerate(task, 32, {});
  GreedyPartitioner partitioner(task);
  const Proposal proposal = proposal_of(space, {ShardingType::grid_shard});
  ASSERT_TRUE(partitioner.place(proposal));
  std::vector<int> devices;
  for (const Shard& shard : partitioner.plan(proposal).shards) devices.push_back(shard.device);
  EXPECT_THAT(devices, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(ShardingTypes, TheClockStopsAProposalOnItsWay) {
  const Task task = task_on_hosts({make_table("a", 1000, 128), make_table("b", 1000, 128)}, 4, 2);
  const SearchSpace space = enumerate(task, 32, {});
  GreedyPartitioner partitioner(task, StopClock(StopClock::Clock::now()));
  for (const ShardingType type :
       {ShardingType::table_wise, ShardingType::column_wise, ShardingType::table_row_wise,
        ShardingType::table_column_wise, ShardingType::grid_shard}) {
    EXPECT_THROW((void)partitioner.place(proposal_of(space, {type, type})), TimeIsOver)
        << to_string(type);
  }
}

// --- Constants ---

TEST(ShardingTypes, ConstantsMakeTheEstimateAgreeWithTheModels) {
  std::vector<Table> tables;
  for (int t = 0; t < 9; ++t) {
    tables.push_back(make_table(fmt::format("t{}", t), 1000 + 5000 * t, 16 << (t % 4), 1.0 + t));
  }
  const Task task = task_on_hosts(tables, 4, 2);
  const Simulator simulator = analytic(task, "a100-40gb", "pcie4");
  const MachineConstants constants = fitted_constants(simulator);
  const PerfEstimate estimate(task, constants);

  double estimated_ms = 0.0;
  double columns = 0.0;
  ShardingPlan dealt;
  for (int t = 0; t < 9; ++t) {
    const std::int64_t dim = tables[t].embedding_dim;
    const Perf perf = estimate(ShardingType::table_wise, tables[t], dim);
    estimated_ms += perf.fwd_compute + perf.bwd_compute;
    columns += static_cast<double>(dim);
    dealt.shards.push_back({t, 0, dim, t % 4});
  }
  double predicted_ms = 0.0;
  for (const DeviceCost& device : simulator.cost(dealt).devices) predicted_ms += device.compute_ms;
  EXPECT_THAT(estimated_ms, DoubleNear(predicted_ms, 1e-9 * predicted_ms));

  // A device's share of all columns, in fp32.
  const std::vector<double> equal(4, columns / 4);
  const std::vector<double> none(4, 0.0);
  const double bytes = 2.0 * 4.0 * static_cast<double>(task.batch_size) * columns / 4;
  const PlanCost exchange = simulator.combine(none, equal);
  EXPECT_THAT(bytes / constants.inter_host, DoubleNear(exchange.cost_ms, 1e-9 * exchange.cost_ms));
  EXPECT_GT(constants.intra_host, constants.inter_host);
  EXPECT_GT(constants.all_reduce, 0.0);

  // On one host both are the same; alone, nothing is to be waited for.
  const MachineConstants host = fitted_constants(analytic(task_on_hosts(tables, 4, 4)));
  EXPECT_EQ(host.intra_host, host.inter_host);
  const MachineConstants alone = fitted_constants(analytic(task_on_hosts(tables, 1, 1)));
  EXPECT_EQ(alone.inter_host, std::numeric_limits<double>::infinity());
}

// --- The planner ---

TEST(ShardingTypes, CopiesAndRowsAreTakenWhereTheyHelp) {
  std::vector<Table> tables;
  for (int t = 0; t < 6; ++t) tables.push_back(make_table(fmt::format("tiny{}", t), 4, 32));
  tables.push_back(make_table("large", 1'000'000, 32, 20.0));
  const Task task = task_on_hosts(tables, 4, 4);
  ShardingTypesOptions options;
  options.constants = MachineConstants{};
  const ShardingTypesPlan found = plan_sharding_types(analytic(task), options);
  for (int t = 0; t < 6; ++t) EXPECT_EQ(to_string(found.types[t]), "data_parallel");
  EXPECT_GT(found.plan.num_row_slices(), 0);
  EXPECT_EQ(found.plan.replicated_tables.size(), 6U);
}

TEST(ShardingTypes, APinnedTableLeavesRowsAndCopiesToTheOthers) {
  std::vector<Table> tables;
  for (int t = 0; t < 6; ++t) tables.push_back(make_table(fmt::format("tiny{}", t), 4, 32));
  tables.push_back(make_table("large", 1'000'000, 32, 200.0));
  tables.push_back(make_table("pinned", 1'000'000, 64, 20.0));
  tables.push_back(make_table("with_tiny0", 1000, 32));
  tables[7].devices = {1, 2};
  tables[8].same_device_as = "tiny0";
  const Task task = task_on_hosts(tables, 4, 4);
  ShardingTypesOptions options;
  options.constants = MachineConstants{};
  // A simulator's tables allow the cuts that are left to them.
  const Simulator simulator = analytic(task).with_cuts(kAllCuts);
  const ShardingPlan plan = plan_sharding_types(simulator, options).plan;
  EXPECT_THAT(violations(task, plan), testing::IsEmpty());
  EXPECT_EQ(plan.replicated_tables, (std::vector<int>{1, 2, 3, 4, 5}));
  const auto rows_of_large =
      std::count_if(plan.shards.begin(), plan.shards.end(),
                    [](const Shard& shard) { return shard.table == 6 && shard.num_rows > 0; });
  EXPECT_GT(rows_of_large, 1);
}

TEST(ShardingTypes, RefusalsSayWhatIsPinned) {
  Task task = task_on_hosts({make_table("a", 1 << 20, 64), make_table("b", 1 << 20, 64)}, 4, 4,
                            std::int64_t{300} << 20);
  const auto refusal = [&]() -> std::string {
    PlannerOptions options;
    options.cuts = kAllCuts;
    try {
      (void)find_planner("torchrec-like")->plan(analytic(task), options);
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "no error";
  };
  for (Table& table : task.tables) table.allow = {false, false, false};
  EXPECT_EQ(refusal(), "no error");
  for (Table& table : task.tables) {
    table.allow = kAllCuts;
    table.min_shard_columns = 64;
    table.devices = {3};
  }
  EXPECT_THAT(refusal(), testing::EndsWith(
                             "no device has room for the whole table \"b\" of 256.00 MiB; the most "
                             "room left on device 3, where alone it may lie, is 44.00 MiB"));
  for (Table& table : task.tables) table.devices = {};
  task.tables[1].same_device_as = "a";
  EXPECT_THAT(refusal(), testing::EndsWith(
                             "no device has room for the whole table \"a\" and all that stay with "
                             "it of 512.00 MiB; the most room left is 300.00 MiB"));
}

TEST(ShardingTypes, WorkIsLimited) {
  std::vector<Table> tables;
  for (int t = 0; t < 30; ++t) tables.push_back(make_table(fmt::format("t{}", t), 100 + t, 64));
  const Simulator simulator = analytic(task_on_hosts(tables, 4, 4));
  ShardingTypesOptions options;
  const std::int64_t all = plan_sharding_types(simulator, options).num_proposals;
  EXPECT_EQ(all, 2 * (30 * 6 + 1) + 7);
  options.max_work = 100;
  const std::int64_t some = plan_sharding_types(simulator, options).num_proposals;
  EXPECT_LT(some, all / 2);
  EXPECT_GE(some, 3);  // one of each proposer that has any
}

TEST(ShardingTypes, RefusalsSayWhichPieceHasNoRoom) {
  const auto refusal = [](const Table& table, std::int64_t memory_bytes) -> std::string {
    PlannerOptions options;
    options.cuts = kAllCuts;
    const Task task = task_on_hosts({table}, 4, 2, memory_bytes);
    try {
      (void)find_planner("torchrec-like")->plan(analytic(task), options);
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "no error";
  };
  Table table = make_table("a", 1 << 20, 64);  // 256 MiB
  EXPECT_EQ(
      refusal(table, 1 << 25),
      "torchrec-like (28 proposals): no host's devices have room for 32 columns of table \"a\" "
      "of 128.00 MiB; the most room left is 64.00 MiB");
  table.allow = {false, true, false};
  EXPECT_EQ(
      refusal(table, 1 << 25),
      "torchrec-like (12 proposals): no host's devices have room for the whole table \"a\" of "
      "256.00 MiB; the most room left is 64.00 MiB");
  table.allow = {false, false, true};
  EXPECT_EQ(refusal(table, 1 << 25),
            "torchrec-like (8 proposals): no device has room for the whole table \"a\" of 256.00 "
            "MiB; the most room left is 32.00 MiB");
  EXPECT_EQ(refusal(table, 1 << 28), "no error");
}

TEST(ShardingTypes, HaveRowsAndCopiesOnlyWhereTheyAreAllowed) {
  std::vector<Table> tables;
  for (int t = 0; t < 8; ++t) tables.push_back(make_table(fmt::format("t{}", t), 4, 32));
  tables.push_back(make_table("large", 1'000'000, 32, 20.0));
  Task task = task_on_hosts(tables, 4, 4);
  PlannerOptions all;
  all.cuts = kAllCuts;
  const auto planner = find_planner("torchrec-like");
  const auto is_of_columns = [&](const PlannerOptions& options) {
    const ShardingPlan plan = planner->plan(analytic(task), options).plan;
    return plan.replicated_tables.empty() && !plan.has_row_slices();
  };
  EXPECT_FALSE(is_of_columns(all));
  PlannerOptions of_columns;
  of_columns.cuts = kColumnsAlone;
  EXPECT_TRUE(is_of_columns(of_columns));
  // What a task or its tables forbid makes the plan that the option makes.
  const ShardingPlan columns = planner->plan(analytic(task), of_columns).plan;
  task.allow = {true, false, false};
  EXPECT_EQ(planner->plan(analytic(task), all).plan.shards, columns.shards);
  task.allow = {};
  for (Table& table : task.tables) table.allow = {true, false, false};
  EXPECT_EQ(planner->plan(analytic(task), all).plan.shards, columns.shards);
  PlannerOptions whole;
  whole.cuts = {false, false, false};
  EXPECT_EQ(planner->plan(analytic(task), whole).plan.shards.size(), task.tables.size());
}

/// Any cuts and least numbers of rows.
Task with_cuts(Task task) {
  const auto cuts = [] {
    return Cuts{*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                *rc::gen::arbitrary<bool>()};
  };
  if (*rc::gen::arbitrary<bool>()) task.allow = cuts();
  for (Table& table : task.tables) {
    if (*rc::gen::inRange(0, 3) == 0) table.allow = cuts();
    table.min_shard_rows = *rc::gen::element<std::int64_t>(0, 0, 1, 7, 1000);
    if (*rc::gen::inRange(0, 4) == 0) {
      table.num_embeddings = *rc::gen::inRange<std::int64_t>(1, 6);
    }
  }
  return task;
}

RC_GTEST_PROP(ShardingTypesProperty, PlansAreValidPricedAndTheSameAgain, ()) {
  Task task = *arbitrary_task(*rc::gen::element(0.8, 1.0, 1.3, 2.0, 10.0));
  if (*rc::gen::arbitrary<bool>()) task = with_conditions(std::move(task));
  task = with_cuts(std::move(task));
  const Simulator simulator =
      analytic(task, "a100-40gb", *rc::gen::element("pcie4", "ethernet-25g"));
  PlannerOptions options;
  options.cuts = {*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                  *rc::gen::arbitrary<bool>()};
  const auto planner = find_planner("torchrec-like");
  Task restricted = task;
  restricted.allow = task.allow & options.cuts;
  try {
    const PlanningResult result = planner->plan(simulator, options);
    const std::vector<std::string> found = violations(restricted, result.plan);
    if (!found.empty()) RC_FAIL(found.front());
    RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
    const PlanningResult again = planner->plan(simulator, options);
    RC_ASSERT(result.plan.shards == again.plan.shards);
    RC_ASSERT(result.plan.replicated_tables == again.plan.replicated_tables);
    RC_CLASSIFY(result.plan.has_row_slices(), "rows");
    RC_CLASSIFY(!result.plan.replicated_tables.empty(), "copies");
  } catch (const InfeasibleError& error) {
    const std::string text = error.what();
    RC_ASSERT(text.starts_with("torchrec-like ("));
    RC_ASSERT(text.find(" room for ") != std::string::npos);
    RC_CLASSIFY(true, "refused");
  }
}

}  // namespace
}  // namespace neuroshard::torchrec
