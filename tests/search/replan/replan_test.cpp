// Planning from an older plan: what counts as moved, and plans that keep to their limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/search/improved_plan.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "neuroshard/search/replan/move_limit.h"
#include "neuroshard/search/replan/placed_before.h"
#include "neuroshard/search/replan/plan_path.h"
#include "neuroshard/search/replan/relabelled_plan.h"
#include "neuroshard/search/replan/repaired_plan.h"
#include "neuroshard/search/replan/replanner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_tasks::arbitrary_compute;
using testing_tasks::arbitrary_plan;
using testing_tasks::arbitrary_task;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::with_pins;
using testing_tasks::with_row_orders;

/// 8 rows x 4 columns of fp32 with row-wise state: 16 + 4 bytes a row; two such tables.
Task two_small_tables() {
  return one_host_task({make_table("a", 8, 8), make_table("b", 8, 8)}, 2, 1 << 20,
                       Optimizer::rowwise_adagrad);
}

ShardingPlan small_plan() { return {{{0, 0, 4, 0}, {0, 4, 4, 1}, {1, 0, 8, 1}}, {}}; }

TEST(PlacedBefore, CountsWeightsAndStateOfWhatADeviceDidNotHold) {
  const Task task = two_small_tables();
  const PlacedBefore before(task, small_plan(), task);
  EXPECT_EQ(before.total_bytes(), 8 * (16 + 4) * 2 + 8 * (32 + 4));
  EXPECT_EQ(before.moved_bytes(small_plan()), 0);
  // All of "a" on device 0, which has half of it and with that a state for each row.
  EXPECT_EQ(before.moved_bytes(Shard{0, 0, 8, 0}), 8 * 16);
  // "b" moves with its state; rows 2 to 4 of it alone.
  EXPECT_EQ(before.moved_bytes(Shard{1, 0, 8, 0}), 8 * (32 + 4));
  EXPECT_EQ(before.moved_bytes(Shard{1, 0, 8, 0, 2, 3}), 3 * (32 + 4));
  EXPECT_EQ(before.moved_bytes(ShardingPlan{{{0, 0, 8, 0}}, {1}}), 8 * 16 + 8 * (32 + 4));
  EXPECT_THAT(before.transfers({{{0, 0, 8, 0}, {1, 0, 8, 0}}, {}}),
              ElementsAre(DeviceTransfer{1, 0, 8 * 16 + 8 * (32 + 4)}));
}

TEST(PlacedBefore, CountsOnlyRowsThatATableHadThenAndHasNow) {
  const Task old_task = two_small_tables();
  Task task = old_task;
  task.tables[0].num_embeddings = 20;  // grown
  task.tables[1].num_embeddings = 6;   // shrunk
  task.tables.push_back(make_table("new", 100, 8));
  const PlacedBefore before(old_task, small_plan(), task);
  EXPECT_EQ(before.rows_before(0), 8);
  EXPECT_EQ(before.rows_before(1), 6);
  EXPECT_EQ(before.rows_before(2), 0);
  EXPECT_EQ(before.total_bytes(), 8 * (16 + 4) * 2 + 6 * (32 + 4));
  EXPECT_EQ(before.moved_bytes(Shard{0, 0, 8, 0}), 8 * 16);
  EXPECT_EQ(before.moved_bytes(Shard{0, 0, 8, 0, 8, 12}), 0);
  EXPECT_EQ(before.moved_bytes(Shard{2, 0, 8, 0}), 0);
  EXPECT_EQ(before.moved_bytes_of_copies(2), 0);
}

TEST(PlacedBefore, TakesTablesOfAnotherDimensionAsNew) {
  const Task old_task = two_small_tables();
  Task task = old_task;
  task.tables[0].embedding_dim = 16;
  const PlacedBefore before(old_task, small_plan(), task);
  EXPECT_EQ(before.rows_before(0), 0);
  EXPECT_EQ(before.total_bytes(), 8 * (32 + 4));
}

TEST(PlacedBefore, SendsCopiesToNewDevicesFromTheirHosts) {
  const Task old_task = two_small_tables();
  Task task = old_task;
  task.topology.world_size = 4;
  task.topology.local_world_size = 2;
  task.topology.memory_bytes.assign(4, 1 << 20);
  const PlacedBefore before(old_task, {{{1, 0, 8, 1}}, {0}}, task);
  EXPECT_TRUE(before.was_replicated(0));
  const std::int64_t bytes = 8 * (32 + 4);
  EXPECT_EQ(before.total_bytes(), 3 * bytes);
  EXPECT_EQ(before.moved_bytes_of_copies(0), 2 * bytes);
  // Each of the two holders sends once.
  EXPECT_THAT(before.transfers({{{1, 0, 8, 1}}, {0}}),
              ElementsAre(DeviceTransfer{0, 2, bytes}, DeviceTransfer{1, 3, bytes}));
}

TEST(PlacedBefore, CopiesOfMoreThanTheLargestSumAreSent) {
  Task task =
      one_host_task({make_table("a", std::int64_t{1} << 42, 1 << 16)}, 16, std::int64_t{1} << 60);
  const PlacedBefore before(task, {{{0, 0, 1 << 16, 3}}, {}}, task);
  EXPECT_EQ(before.moved_bytes_of_copies(0), std::numeric_limits<std::int64_t>::max());
  const std::vector<DeviceTransfer> transfers = before.transfers({{}, {0}});
  ASSERT_EQ(transfers.size(), 15u);
  for (const DeviceTransfer& transfer : transfers) {
    EXPECT_EQ(transfer.from, 3);
    EXPECT_EQ(transfer.bytes, std::int64_t{1} << 60);
  }
}

TEST(PlacedBefore, DevicesThatAreGoneStillSend) {
  const Task old_task = two_small_tables();
  Task task = old_task;
  task.topology = testing_tasks::make_topology(1, 1, 1 << 20);
  const PlacedBefore before(old_task, small_plan(), task);
  EXPECT_EQ(before.total_bytes(), 8 * (16 + 4) * 2 + 8 * (32 + 4));
  EXPECT_THAT(before.transfers({{{0, 0, 8, 0}, {1, 0, 8, 0}}, {}}),
              ElementsAre(DeviceTransfer{1, 0, 8 * 16 + 8 * (32 + 4)}));
}

/// A plan with slices of rows and copies: columns of `arbitrary_plan`, cut once more.
ShardingPlan arbitrary_rectangles(const Task& task) {
  ShardingPlan plan;
  std::set<int> copies;
  for (const Shard& shard : (*arbitrary_plan(task)).shards) {
    const std::int64_t rows = task.tables[shard.table].num_embeddings;
    const int kind = *rc::gen::inRange(0, 4);
    if (kind == 0 && shard.num_columns == task.tables[shard.table].embedding_dim) {
      copies.insert(shard.table);
    } else if (kind == 1 && rows > 1) {
      const std::int64_t first = *rc::gen::inRange<std::int64_t>(1, rows);
      Shard above = shard;
      above.num_rows = first;
      Shard below = shard;
      below.row_offset = first;
      below.num_rows = rows - first;
      below.device = *rc::gen::inRange(0, task.topology.world_size);
      plan.shards.push_back(above);
      plan.shards.push_back(below);
    } else {
      plan.shards.push_back(shard);
    }
  }
  plan.replicated_tables.assign(copies.begin(), copies.end());
  sort_shards(plan);
  return plan;
}

/// Element by element.
std::int64_t counted_bytes(const Task& old_task, const ShardingPlan& before, const Task& task,
                           const ShardingPlan& after) {
  using Place = std::tuple<std::string, int, std::int64_t, std::int64_t>;
  const auto places = [](const Task& of, const ShardingPlan& plan) {
    std::vector<std::pair<std::string, Shard>> shards;
    for (const Shard& shard : plan.shards) shards.emplace_back(of.tables[shard.table].name, shard);
    for (const int table : plan.replicated_tables) {
      for (int d = 0; d < of.topology.world_size; ++d) {
        shards.emplace_back(of.tables[table].name,
                            Shard{table, 0, of.tables[table].embedding_dim, d});
      }
    }
    return shards;
  };
  std::set<Place> held;
  std::set<std::pair<std::string, std::int64_t>> known;  // rows
  for (const auto& [name, shard] : places(old_task, before)) {
    const std::int64_t rows = shard.rows_of(old_task.tables[shard.table]);
    for (std::int64_t r = shard.row_offset; r < shard.row_offset + rows; ++r) {
      known.emplace(name, r);
      for (std::int64_t c = 0; c < shard.num_columns; ++c) {
        held.emplace(name, shard.device, r, shard.column_offset + c);
      }
    }
  }
  std::int64_t bytes = 0;
  for (const auto& [name, shard] : places(task, after)) {
    const Table& table = task.tables[shard.table];
    const auto old_table = std::find_if(
        old_task.tables.begin(), old_task.tables.end(),
        [&, &table_name = name](const Table& other) { return other.name == table_name; });
    const bool is_known =
        old_table != old_task.tables.end() && old_table->embedding_dim == table.embedding_dim;
    for (std::int64_t r = shard.row_offset; r < shard.row_offset + shard.rows_of(table); ++r) {
      if (!is_known || !known.contains({name, r})) continue;
      std::int64_t missing = 0;
      for (std::int64_t c = 0; c < shard.num_columns; ++c) {
        missing += held.contains({name, shard.device, r, shard.column_offset + c}) ? 0 : 1;
      }
      bytes += missing * element_bytes(table.data_type);
      if (missing == shard.num_columns && task.optimizer == Optimizer::rowwise_adagrad) bytes += 4;
    }
  }
  return bytes;
}

/// The task after some time: tables are gone, new, grown, shrunk, and used otherwise; perhaps there
/// are more devices, or fewer.
Task changed_task(Task task, std::int64_t most_rows = 100'000) {
  for (Table& table : task.tables) {
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        table.name += "-new";
        break;
      case 1:
        table.num_embeddings = std::min(2 * table.num_embeddings, most_rows);
        break;
      case 2:
        table.num_embeddings = (table.num_embeddings + 1) / 2;
        break;
      case 3:
        table.pooling_factor *= 3.0;
        break;
      default:
        break;
    }
  }
  if (task.tables.size() > 1 && *rc::gen::arbitrary<bool>()) task.tables.pop_back();
  Topology& topology = task.topology;
  const int hosts =
      std::max(topology.world_size / topology.local_world_size + *rc::gen::inRange(-1, 2), 1);
  topology.world_size = hosts * topology.local_world_size;
  topology.memory_bytes.resize(topology.world_size, topology.memory_bytes.front());
  return task;
}

RC_GTEST_PROP(PlacedBeforeProperty, MovedBytesAreThoseCountedElementByElement, ()) {
  Task old_task = *arbitrary_task(10.0);
  if (old_task.tables.size() > 5) old_task.tables.resize(5);
  for (Table& table : old_task.tables) {
    table.num_embeddings = 1 + table.num_embeddings % 12;
    table.embedding_dim = std::min<std::int64_t>(table.embedding_dim, 16);
  }
  const ShardingPlan plan = arbitrary_rectangles(old_task);
  const Task task = changed_task(old_task, 24);
  const ShardingPlan next = arbitrary_rectangles(task);
  const PlacedBefore before(old_task, plan, task);
  const std::int64_t moved = before.moved_bytes(next);
  RC_ASSERT(moved == counted_bytes(old_task, plan, task, next));
  std::int64_t sent = 0;
  for (const DeviceTransfer& transfer : before.transfers(next)) {
    RC_ASSERT(transfer.from != transfer.to);
    RC_ASSERT(transfer.bytes > 0);
    sent += transfer.bytes;
  }
  RC_ASSERT(sent == moved);
}

std::vector<TableOrigin> whole_tables(const Task& task) {
  std::vector<TableOrigin> origins;
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    origins.push_back({{static_cast<int>(t), 0, task.tables[t].embedding_dim, -1}});
  }
  return origins;
}

RC_GTEST_PROP(MoveLedgerProperty, AgreesWithTheArrangedPlan, ()) {
  const Task task = *arbitrary_task(10.0);
  const ShardingPlan old_plan = *arbitrary_plan(task);
  const PlacedBefore before(task, old_plan, task);
  const MoveLimit limit(before, whole_tables(task), 0);
  // Pieces of a table on one device are one there.
  const auto joined = [](const ShardingPlan& plan) {
    ShardingPlan result;
    for (const Shard& shard : plan.shards) {
      auto same = std::find_if(result.shards.begin(), result.shards.end(), [&](const Shard& other) {
        return other.table == shard.table && other.device == shard.device;
      });
      if (same == result.shards.end()) {
        result.shards.push_back(shard);
      } else {
        same->num_columns += shard.num_columns;
      }
    }
    return result;
  };
  ShardingPlan plan = joined(old_plan);
  MoveLedger ledger(limit, plan);
  RC_ASSERT(ledger.moved_bytes() == before.moved_bytes(limit.arranged(plan)));
  RC_ASSERT(ledger.moved_bytes() == 0);
  const ShardingPlan next = joined(*arbitrary_plan(task));
  std::vector<ColumnChange> changes;
  for (const Shard& shard : plan.shards) {
    changes.push_back({shard.table, -shard.num_columns, shard.device});
  }
  for (const Shard& shard : next.shards) {
    changes.push_back({shard.table, shard.num_columns, shard.device});
  }
  RC_ASSERT(ledger.moved_with(changes) == before.moved_bytes(limit.arranged(next)));
  RC_ASSERT(ledger.moved_bytes() == 0);  // not yet
  ledger.commit();
  RC_ASSERT(ledger.moved_bytes() == before.moved_bytes(limit.arranged(next)));
  RC_ASSERT(violations(Task(task), limit.arranged(next)).empty() ==
            violations(Task(task), next).empty());
}

TEST(MoveLimit, PutsNewPiecesBetweenThoseThatStay) {
  const Task task = one_host_task({make_table("a", 10, 64)}, 4, 1 << 20);
  const PlacedBefore before(task, {{{0, 0, 32, 3}, {0, 32, 32, 1}}, {}}, task);
  const MoveLimit limit(before, whole_tables(task), 0);
  // Devices 1 and 3 give half of their columns to device 0.
  const ShardingPlan arranged =
      limit.arranged({{{0, 0, 32, 0}, {0, 32, 16, 1}, {0, 48, 16, 3}}, {}});
  EXPECT_THAT(arranged.shards,
              ElementsAre(Shard{0, 0, 16, 3}, Shard{0, 16, 32, 0}, Shard{0, 48, 16, 1}));
  EXPECT_EQ(before.moved_bytes(arranged), 10 * 32 * 4);
}

TEST(RelabelledPlan, UndoesAnExchangeOfDevicesAndHosts) {
  Task task = one_host_task({}, 6, 1 << 20);
  task.topology.local_world_size = 2;
  ShardingPlan plan;
  for (int i = 0; i < 6; ++i) {
    task.tables.push_back(make_table("t" + std::to_string(i), 10 + i, 8));
    plan.shards.push_back({i, 0, 8, i});
  }
  ShardingPlan exchanged = plan;
  const std::vector<int> places{3, 2, 4, 5, 1, 0};  // hosts go round, devices are exchanged
  for (Shard& shard : exchanged.shards) shard.device = places[shard.device];
  const PlacedBefore before(task, plan, task);
  EXPECT_EQ(relabelled_plan(task, before, exchanged).shards, plan.shards);
  task.topology.memory_bytes[0] -= 1;  // then its host is not like the others
  EXPECT_EQ(relabelled_plan(task, before, plan).shards, plan.shards);
  for (const Shard& shard : relabelled_plan(task, before, exchanged).shards) {
    EXPECT_EQ(shard.device == 0, shard.table == 5);
  }
}

PlannerOptions brief_search(int num_threads = 1) {
  PlannerOptions options;
  options.steps = 400;
  options.num_threads = num_threads;
  return options;
}

std::optional<ShardingPlan> planned_at_first(const Task& task) {
  try {
    return NeuroShardPlanner().plan(make_simulator(task), brief_search()).plan;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

/// Of "...; --max-move 55% would do".
std::optional<int> share_that_would_do(const std::string& message) {
  const std::string before = "; --max-move ";
  const std::size_t at = message.find(before);
  if (at == std::string::npos) return std::nullopt;
  return std::stoi(message.substr(at + before.size()));
}

RC_GTEST_PROP(ReplannerProperty, PlansAreValidKeepToTheLimitAndDoNotDependOnThreads, ()) {
  Task old_task = *arbitrary_task(*rc::gen::element(0.8, 1.0, 2.0, 10.0));
  if (*rc::gen::arbitrary<bool>()) old_task = with_pins(std::move(old_task));
  if (*rc::gen::arbitrary<bool>()) old_task = with_row_orders(std::move(old_task));
  const std::optional<ShardingPlan> old_plan = planned_at_first(old_task);
  if (!old_plan) return;
  Task task = changed_task(old_task);
  try {
    validate(task);
  } catch (const InputError&) {
    return;  // pins on devices or tables that are gone
  }
  const auto before = std::make_shared<const PlacedBefore>(old_task, *old_plan, task);
  const Simulator simulator = make_simulator(task, arbitrary_compute());
  const double max_move = *rc::gen::element(0.0, 0.1, 0.5, 1.0);
  const Replanner replanner(before, max_move);
  PlanningResult result;
  try {
    result = replanner.plan(simulator, brief_search());
  } catch (const InfeasibleError& error) {
    if (const std::optional<int> percent = share_that_would_do(error.what())) {
      (void)Replanner(before, *percent / 100.0).plan(simulator, brief_search());
    }
    return;
  }
  RC_CLASSIFY(true, "planned");
  const std::vector<std::string> found = violations(task, result.plan);
  if (!found.empty()) RC_FAIL(found.front());
  RC_ASSERT(static_cast<double>(before->moved_bytes(result.plan)) <=
            max_move * static_cast<double>(before->total_bytes()));
  RC_ASSERT(result.predicted.cost_ms == simulator.cost(result.plan).cost_ms);
  const PlanningResult again = replanner.plan(simulator, brief_search(3));
  RC_ASSERT(again.plan.shards == result.plan.shards);
  RC_ASSERT(again.plan.replicated_tables == result.plan.replicated_tables);
}

Task plain_task(int num_devices) {
  std::vector<Table> tables;
  for (int i = 0; i < 24; ++i) {
    tables.push_back(make_table("t" + std::to_string(i), 1000 * (i + 1), 64, 1.0 + i % 5));
  }
  return one_host_task(std::move(tables), num_devices, std::int64_t{1} << 30);
}

PlanningResult replanned(const Task& old_task, const ShardingPlan& old_plan, const Task& task,
                         double max_move, const PlannerOptions& options = brief_search()) {
  const auto before = std::make_shared<const PlacedBefore>(old_task, old_plan, task);
  return Replanner(before, max_move).plan(make_simulator(task), options);
}

TEST(Replanner, WithoutAllowanceTheOldPlanStays) {
  const Task task = plain_task(4);
  const ShardingPlan old_plan = *planned_at_first(task);
  const PlanningResult result = replanned(task, old_plan, task, 0.0);
  EXPECT_EQ(result.plan.shards, old_plan.shards);
  EXPECT_EQ(result.plan.replicated_tables, old_plan.replicated_tables);
}

TEST(Replanner, GainsMoreWhereMoreMayMove) {
  const Task old_task = plain_task(4);
  const ShardingPlan old_plan = *planned_at_first(old_task);
  Task task = old_task;
  for (int i = 0; i < 24; i += 5) task.tables[i].pooling_factor *= 10.0;
  const double kept = replanned(old_task, old_plan, task, 0.0).predicted.cost_ms;
  const double limited = replanned(old_task, old_plan, task, 0.1).predicted.cost_ms;
  const double free = replanned(old_task, old_plan, task, 1.0).predicted.cost_ms;
  EXPECT_LT(limited, kept);
  EXPECT_LE(free, limited * 1.02);
}

/// That the plan stays where moves must gain all of the longest computation, and only there.
void expect_stays_without_gain(const Task& old_task, const ShardingPlan& old_plan,
                               const Task& task) {
  PlannerOptions options = brief_search();
  options.least_gain = 1.0;
  const PlanningResult kept = replanned(old_task, old_plan, task, 1.0, options);
  EXPECT_EQ(kept.plan.shards, old_plan.shards);
  EXPECT_EQ(kept.plan.replicated_tables, old_plan.replicated_tables);
  options.least_gain = 0.0;
  const PlanningResult moved = replanned(old_task, old_plan, task, 1.0, options);
  EXPECT_LT(moved.predicted.cost_ms, kept.predicted.cost_ms);
}

TEST(Replanner, MovesThatGainTooLittleAreNotMade) {
  const Task old_task = plain_task(4);
  Task task = old_task;
  for (int i = 0; i < 24; i += 5) task.tables[i].pooling_factor *= 10.0;
  expect_stays_without_gain(old_task, *planned_at_first(old_task), task);
}

TEST(Replanner, CopiesThatGainTooLittleAreNotMade) {
  Task task = one_host_task({make_table("tiny", 3, 256), make_table("large", 1'000'000, 128, 20.0)},
                            2, std::int64_t{1} << 40);
  task.batch_size = 65'536;
  expect_stays_without_gain(task, {{{0, 0, 256, 0}, {1, 0, 128, 1}}, {}}, task);
}

/// Nine tables on nine devices, each of which has room for 2^60 bytes: one table of 2^42 rows.
Task vast_task(std::int64_t num_rows) {
  std::vector<Table> tables;
  for (int t = 0; t < 9; ++t) {
    tables.push_back(make_table(std::string(1, static_cast<char>('a' + t)), num_rows, 1 << 16));
  }
  Task task = one_host_task(std::move(tables), 9, std::int64_t{1} << 60);
  task.allow = kColumnsAlone;
  return task;
}

TEST(Replanner, BytesPastTheLargestSumMayAllMove) {
  const Task task = vast_task(std::int64_t{1} << 42);
  ShardingPlan old_plan;
  for (int t = 0; t < 9; ++t) old_plan.shards.push_back({t, 0, 1 << 16, t});
  ASSERT_THAT(violations(task, old_plan), IsEmpty());
  EXPECT_THAT(violations(task, replanned(task, old_plan, task, 1.0).plan), IsEmpty());
}

/// All-reduces take no time.
class FreeAllReduces final : public AnalyticCommunicationModel {
 public:
  FreeAllReduces() : AnalyticCommunicationModel(find_interconnect("a100-nvswitch")) {}

  [[nodiscard]] double all_reduce_ms(const Topology& /*topology*/,
                                     double /*bytes*/) const override {
    return 0.0;
  }
};

/// Copies move as much as a sum can be, three times: where all may move, the others still may.
TEST(ImprovedPlan, CopiesPastTheLargestSumLeaveRoomForMoves) {
  std::vector<Table> tables{make_table("hot", 1'000'000, 64, 1000.0)};
  for (const char* name : {"a", "b", "c"}) {
    tables.push_back(make_table(name, std::int64_t{1} << 42, 1 << 14));
  }
  const Task task = one_host_task(std::move(tables), 34, std::int64_t{1} << 60);
  Task old_task = task;
  old_task.topology = testing_tasks::make_topology(2, 2, std::int64_t{1} << 60);
  const ShardingPlan plan{{{0, 0, 64, 0}}, {1, 2, 3}};
  const PlacedBefore before(old_task, plan, task);
  const std::vector<TableOrigin> origins = whole_tables(task);
  const MoveRules rules{before, origins, std::numeric_limits<std::int64_t>::max()};
  LocalSearchBudget budget;
  budget.steps = 2'000;
  ThreadPool pool(1);
  const Simulator simulator(task, testing_tasks::analytic_compute(),
                            std::make_shared<FreeAllReduces>());
  const PlanningResult result =
      improved_plan(simulator, plan, kColumnsAlone, {}, budget, pool, &rules);
  EXPECT_THAT(violations(task, result.plan), IsEmpty());
  EXPECT_EQ(result.plan.replicated_tables, plan.replicated_tables);
  EXPECT_GT(result.plan.shards.size(), 1u);
}

TEST(Replanner, RelievesADeviceOfMoreThanTheLargestSum) {
  const Task old_task = vast_task(100);
  ShardingPlan old_plan;
  for (int t = 0; t < 9; ++t) old_plan.shards.push_back({t, 0, 1 << 16, 0});
  ASSERT_THAT(violations(old_task, old_plan), IsEmpty());
  const Task grown = vast_task(std::int64_t{1} << 42);
  EXPECT_THAT(violations(grown, replanned(old_task, old_plan, grown, 1.0).plan), IsEmpty());
}

TEST(Replanner, FillsDevicesThatAreNew) {
  const Task old_task = plain_task(2);
  const Task task = plain_task(4);
  const PlanningResult result = replanned(old_task, *planned_at_first(old_task), task, 0.5);
  std::set<int> used;
  for (const Shard& shard : result.plan.shards) used.insert(shard.device);
  EXPECT_THAT(used, testing::Contains(2));
  EXPECT_THAT(used, testing::Contains(3));
}

TEST(Replanner, SaysTheLeastShareThatWasFound) {
  // Half of the tables' bytes are on a device that is gone.
  const Task old_task = plain_task(2);
  const Task task = plain_task(1);
  const ShardingPlan old_plan = *planned_at_first(old_task);
  try {
    (void)replanned(old_task, old_plan, task, 0.1);
    FAIL() << "expected an InfeasibleError";
  } catch (const InfeasibleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no plan found that moves at most 10% of the "));
    EXPECT_THAT(error.what(), HasSubstr("the least found moves "));
    const std::optional<int> percent = share_that_would_do(error.what());
    ASSERT_TRUE(percent.has_value()) << error.what();
    EXPECT_THAT(violations(task, replanned(old_task, old_plan, task, *percent / 100.0).plan),
                IsEmpty());
  }
  EXPECT_THAT(violations(task, replanned(old_task, old_plan, task, 1.0).plan), IsEmpty());
}

TEST(Replanner, RelievesDevicesOfTablesThatHaveGrown) {
  Task task = one_host_task({make_table("a", 1000, 64), make_table("b", 1000, 64),
                             make_table("c", 100, 64), make_table("d", 100, 64)},
                            2, 1300 * 64 * 4);
  task.allow = kColumnsAlone;
  const ShardingPlan old_plan{{{0, 0, 64, 0}, {1, 0, 64, 1}, {2, 0, 64, 0}, {3, 0, 64, 1}}, {}};
  ASSERT_THAT(violations(task, old_plan), IsEmpty());
  Task grown = task;
  grown.tables[0].num_embeddings = 1250;
  const auto before = std::make_shared<const PlacedBefore>(task, old_plan, grown);
  const PlanningResult result = Replanner(before, 0.1).plan(make_simulator(grown), brief_search());
  EXPECT_THAT(violations(grown, result.plan), IsEmpty());
  EXPECT_GT(before->moved_bytes(result.plan), 0);
}

TEST(WayHome, EndsWhereTheLimitHolds) {
  const Task task = plain_task(4);
  const Simulator simulator = make_simulator(task);
  const ShardingPlan home = *planned_at_first(task);
  ShardingPlan away = home;
  for (Shard& shard : away.shards) shard.device = (shard.device + 1) % 4;
  const PlacedBefore before(task, home, task);
  const auto moved = [&](const ShardingPlan& plan) { return before.moved_bytes(plan); };
  const std::int64_t half = before.moved_bytes(away) / 2;
  const ShardingPlan result = way_home(simulator, away, home, moved, half);
  EXPECT_LE(before.moved_bytes(result), half);
  EXPECT_GT(before.moved_bytes(result), 0);
  EXPECT_THAT(violations(task, result), IsEmpty());
  EXPECT_EQ(way_home(simulator, away, home, moved, 0).shards, home.shards);
}

}  // namespace
}  // namespace neuroshard
