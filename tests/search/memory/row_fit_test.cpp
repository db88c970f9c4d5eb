// Fitting with rows: plans are valid, devices can be filled to the last row, and errors say what
// rows would do.
#include "neuroshard/search/memory/row_fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "neuroshard/core/error.h"
#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/neuroshard_planner.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_tasks::arbitrary_compute;
using testing_tasks::arbitrary_task;
using testing_tasks::kGiB;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::with_conditions;

TEST(RowFit, FillsDevicesToTheLastRow) {
  // 1,000 rows of 16 bytes; two devices hold them exactly.
  Task task = one_host_task({make_table("a", 1000, 4)}, 2, 0);
  task.topology.memory_bytes = {16 * 300, 16 * 700};
  ASSERT_FALSE(fit_memory(task).feasible);
  EXPECT_THAT(fit_with_rows(task),
              ElementsAre(Shard{0, 0, 4, 1, 0, 700}, Shard{0, 0, 4, 0, 700, 300}));
  task.topology.memory_bytes = {16 * 300, 16 * 700 - 1};
  EXPECT_THAT(fit_with_rows(task), IsEmpty());
}

TEST(RowFit, WholeTablesWhereTheyFit) {
  const Task task = one_host_task(
      {make_table("a", 60, 4), make_table("b", 50, 4), make_table("c", 40, 4)}, 2, 1600);
  const std::vector<Shard> shards = fit_with_rows(task);
  ASSERT_EQ(shards.size(), 3u);
  for (const Shard& shard : shards) EXPECT_TRUE(shard.has_all_rows());
}

TEST(RowFit, RowsMakeWayWherePinsOverlap) {
  // `a` fills device 1, where it has most room, and has to move on for `b`.
  Task task = one_host_task({make_table("a", 8, 4), make_table("b", 8, 4)}, 3, 0);
  task.topology.memory_bytes = {16 * 6, 16 * 10, 16 * 2};
  task.tables[0].devices = {0, 1};
  task.tables[1].devices = {1, 2};
  const std::vector<Shard> shards = fit_with_rows(task);
  EXPECT_THAT(violations(task, {shards}), IsEmpty());
  EXPECT_FALSE(shards.empty());
  task.topology.memory_bytes[2] = 16 * 2 - 1;
  EXPECT_FALSE(fit_with_rows(task).empty());  // two rows to spare
  task.topology.memory_bytes = {16 * 6, 16 * 9, 1};
  EXPECT_THAT(fit_with_rows(task), IsEmpty());
}

/// Hall's condition: whatever tables are taken, the devices that they may lie on have room for all
/// their rows.
bool has_rooms(const Task& task) {
  const auto count = static_cast<unsigned>(task.tables.size());
  for (unsigned chosen = 1; chosen < 1U << count; ++chosen) {
    std::int64_t rows = 0;
    std::set<int> devices;
    for (unsigned t = 0; t < count; ++t) {
      if ((chosen >> t & 1U) == 0) continue;
      rows += task.tables[t].num_embeddings;
      devices.insert(task.tables[t].devices.begin(), task.tables[t].devices.end());
    }
    for (const int device : devices) rows -= task.topology.memory_bytes[device] / 16;
    if (rows > 0) return false;
  }
  return true;
}

RC_GTEST_PROP(RowFitProperty, PinnedTablesFitExactlyWhereHallsConditionSaysSo, ()) {
  const int num_devices = *rc::gen::inRange(2, 7);
  const int num_tables = *rc::gen::inRange(1, 8);
  Task task = one_host_task({}, num_devices, 0);
  for (std::int64_t& bytes : task.topology.memory_bytes) {
    bytes = std::max<std::int64_t>(16 * *rc::gen::inRange<std::int64_t>(0, 40), 1);
  }
  for (int t = 0; t < num_tables; ++t) {
    Table table = make_table(fmt::format("t{}", t), *rc::gen::inRange<std::int64_t>(2, 40), 4);
    for (int device = 0; device < num_devices; ++device) {
      if (*rc::gen::arbitrary<bool>()) table.devices.push_back(device);
    }
    if (table.devices.empty()) table.devices.push_back(t % num_devices);
    task.tables.push_back(table);
  }
  const std::vector<Shard> shards = fit_with_rows(task);
  RC_ASSERT(shards.empty() != has_rooms(task));
  if (!shards.empty()) RC_ASSERT(violations(task, {shards}).empty());
  RC_CLASSIFY(shards.empty(), "no room");
}

TEST(RowFit, SlicesHaveTheLeastRowsThatTheirTableSays) {
  Task task = one_host_task({make_table("a", 1000, 4)}, 2, 0);
  task.topology.memory_bytes = {16 * 300, 16 * 800};
  task.tables[0].min_shard_rows = 250;  // 800 would leave 200
  EXPECT_THAT(fit_with_rows(task),
              ElementsAre(Shard{0, 0, 4, 1, 0, 750}, Shard{0, 0, 4, 0, 750, 250}));
  task.tables[0].min_shard_rows = 501;
  EXPECT_THAT(fit_with_rows(task), IsEmpty());
}

TEST(RowFit, ASliceLeavesTheLeastRowsForAllThatFollow) {
  Task task = one_host_task({make_table("a", 330, 4)}, 3, 0);
  task.topology.memory_bytes = {16 * 180, 16 * 100, 16 * 100};
  task.tables[0].min_shard_rows = 100;  // 180 would leave 150, which are no two slices
  EXPECT_THAT(fit_with_rows(task),
              ElementsAre(Shard{0, 0, 4, 0, 0, 130}, Shard{0, 0, 4, 1, 130, 100},
                          Shard{0, 0, 4, 2, 230, 100}));
  task.topology.memory_bytes = {16 * 180, 16 * 99, 16 * 160};  // no slice where 99 have room
  EXPECT_THAT(fit_with_rows(task),
              ElementsAre(Shard{0, 0, 4, 0, 0, 180}, Shard{0, 0, 4, 2, 180, 150}));
}

TEST(RowFit, ColumnsTooWhereSlicesOfAllColumnsWouldHaveTooFewRows) {
  Task task = one_host_task({make_table("a", 8'000'000'000, 64)}, 32, 60 * kGiB);
  task.tables[0].min_shard_rows = 4'000'000'000;
  const std::vector<Shard> shards = fit_with_rows(task);
  EXPECT_THAT(violations(task, {shards, {}}), IsEmpty());
  EXPECT_EQ(shards.size(), 32u);
  task.tables[0].allow.columns = false;
  EXPECT_THAT(fit_with_rows(task), IsEmpty());
}

TEST(RowFit, APieceOfColumnsKeepsItsRowsWhereTheyHaveRoom) {
  Task task = one_host_task({make_table("a", 1000, 8)}, 3, 0);
  task.topology.memory_bytes = {16 * 1001, 16 * 998, 16 * 998};
  task.tables[0].min_shard_rows = 500;  // of 8 columns only one device has room for so many
  EXPECT_THAT(fit_with_rows(task), ElementsAre(Shard{0, 0, 4, 0}, Shard{0, 4, 4, 1, 0, 500},
                                               Shard{0, 4, 4, 2, 500, 500}));
}

/// A whole table takes the device that another must lie on, if that one comes later.
TEST(RowFit, TablesThatMayNotLieAnywhereComeFirstWhereThatHelps) {
  Task task = one_host_task(
      {make_table("whole", 1000, 4), make_table("pinned", 1000, 4), make_table("rows", 800, 4)}, 2,
      16 * 1600);
  task.tables[0].allow = {.columns = false, .rows = false, .replicas = false};
  task.tables[1].devices = {0};
  const std::vector<Shard> shards = fit_with_rows(task);
  EXPECT_FALSE(shards.empty());
  EXPECT_THAT(violations(task, {shards, {}}), IsEmpty());
}

TEST(RowFit, TablesThatKeepTheirRowsAreCutInColumns) {
  Task task =
      one_host_task({make_table("rows", 1000, 4), make_table("columns", 500, 8)}, 2, 16 * 1000);
  task.tables[1].allow.rows = false;
  task.topology.memory_bytes = {16 * 600, 16 * 1400};
  const std::vector<Shard> shards = fit_with_rows(task);
  EXPECT_THAT(violations(task, {shards, {}}), IsEmpty());
  for (const Shard& shard : shards) {
    if (shard.table == 1) {
      EXPECT_TRUE(shard.has_all_rows());
    }
  }
}

RC_GTEST_PROP(RowFitProperty, PlansAreValidAndSpareMemoryIsEnough, ()) {
  const double slack = *rc::gen::element(0.5, 0.7, 0.8, 1.0);
  Task task = *arbitrary_task(slack);
  const bool conditions = *rc::gen::arbitrary<bool>();
  if (conditions) task = with_conditions(std::move(task));
  const std::vector<Shard> shards = fit_with_rows(task);
  if (!shards.empty()) RC_ASSERT(violations(task, {shards, {}}).empty());
  if (conditions) return;
  std::int64_t need = 0;
  std::int64_t largest_row = 0;
  bool anywhere = true;
  for (const Table& table : task.tables) {
    need += shard_bytes(table, table.embedding_dim, task.optimizer);
    largest_row = std::max(largest_row, row_bytes(table, table.embedding_dim, task.optimizer));
    anywhere = anywhere && table.allow.rows && table.num_embeddings > 1;
  }
  std::int64_t room = 0;
  for (const std::int64_t bytes : task.topology.memory_bytes) {
    room += std::max<std::int64_t>(bytes - largest_row, 0);
  }
  if (anywhere && room >= need) RC_ASSERT(!shards.empty());
}

/// Tables that no plan of columns fits: of more rows than a device holds of 4 columns.
TEST(RowsForMemory, TablesBeyondAnyDeviceGetAPlan) {
  Task task = one_host_task({make_table("ids", 8'000'000'000, 4), make_table("small", 1000, 64)}, 8,
                            20 * kGiB);
  const Simulator simulator = make_simulator(task);
  PlannerOptions options;
  options.cuts = {};
  const PlanningResult result = NeuroShardPlanner().plan(simulator, options);
  EXPECT_THAT(violations(task, result.plan), IsEmpty());
  EXPECT_TRUE(result.plan.has_row_slices());
}

std::string refusal_of_rows(const Task& task, const Cuts& cuts) {
  PlannerOptions options;
  options.cuts = cuts;
  try {
    (void)NeuroShardPlanner().plan(make_simulator(task), options);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

TEST(RowsForMemory, ErrorsSayWhichCutsWouldDo) {
  const Cuts none{false, false, false};
  const Task rows = one_host_task({make_table("ids", 8'000'000'000, 4)}, 8, 20 * kGiB);
  EXPECT_THAT(refusal_of_rows(rows, none), HasSubstr("; with rows cut too, the tables fit"));
  Task both = one_host_task(
      {make_table("ids", 8'000'000'000, 4), make_table("wide", 1 << 23, 1024)}, 8, 20 * kGiB);
  both.tables[1].allow.rows = false;
  EXPECT_THAT(refusal_of_rows(both, none),
              HasSubstr("; with columns and rows cut too, the tables fit"));
  Task columns = one_host_task({make_table("wide", 1 << 20, 1024)}, 8, kGiB);
  EXPECT_THAT(refusal_of_rows(columns, none), HasSubstr("; with columns cut too, the tables fit"));
  EXPECT_THAT(refusal_of_rows(columns, {.columns = false, .rows = false, .replicas = true}),
              HasSubstr("; with columns cut too, the tables fit"));
  // A cut that the task does not allow is no advice.
  columns.allow = none;
  EXPECT_THAT(refusal_of_rows(columns, none), Not(HasSubstr("cut too")));
}

TEST(RowsForMemory, ErrorsSayWhatRowsWouldDo) {
  Task task = one_host_task({make_table("ids", 8'000'000'000, 4)}, 8, 20 * kGiB);
  EXPECT_THAT(refusal_of_rows(task, {.columns = true, .rows = false, .replicas = false}),
              testing::AllOf(HasSubstr("table \"ids\" cannot be cut and has 4 columns"),
                             HasSubstr("with rows cut too, the tables fit")));
  task.topology.memory_bytes.assign(8, 10 * kGiB);
  const std::string all = refusal_of_rows(task, {});
  EXPECT_THAT(all, HasSubstr("the tables need 119.21 GiB, 8 devices have 80.00 GiB"));
  EXPECT_THAT(all, HasSubstr("8 devices of 14.90 GiB"));
  EXPECT_THAT(all, HasSubstr("12 devices of 10.00 GiB"));
  EXPECT_EQ(refusal_of_rows(task, {.columns = true, .rows = false, .replicas = false})
                .find("rows cut too"),
            std::string::npos);
}

TEST(RowsForMemory, ErrorsNameTheFewestRowsOfASlice) {
  Task task = one_host_task({make_table("ids", 8'000'000'000, 4)}, 8, 20 * kGiB);
  task.tables[0].min_shard_rows = 5'000'000'000;
  EXPECT_EQ(refusal_of_rows(task, {}),
            "no plan fits into memory: table \"ids\" cannot be cut below 4 columns of 8000000000 "
            "rows, as its slices have at least 5000000000; that needs 119.21 GiB, and the largest "
            "device has 20.00 GiB; 8 devices of 119.21 GiB (122071MiB) would do, and no number of "
            "devices of 20.00 GiB; with shorter slices the tables fit");
  task = one_host_task({make_table("ids", 1'000'000, 4)}, 4, 4 << 20);
  task.tables[0].min_shard_rows = 400'000;
  const std::string text = refusal_of_rows(task, {});
  EXPECT_THAT(text, HasSubstr("table \"ids\" cannot be cut below 4 columns of 500000 rows, as its "
                              "slices have at least 400000; that needs 7.63 MiB, and the largest"));
  EXPECT_THAT(text, EndsWith("; with shorter slices the tables fit"));
  task.topology = one_host_task({}, 2, 4 << 20).topology;  // too little for slices of any length
  EXPECT_THAT(refusal_of_rows(task, {}), Not(HasSubstr("shorter")));
}

TEST(RowsForMemory, ErrorsSayThatATableDoesNotAllowCutsOfRows) {
  Task task = one_host_task({make_table("ids", 8'000'000'000, 4)}, 8, 20 * kGiB);
  task.tables[0].allow.rows = false;
  EXPECT_THAT(refusal_of_rows(task, {}),
              HasSubstr("table \"ids\" cannot be cut and has 4 columns, as \"allow\" does not name "
                        "\"rows\"; that needs 119.21 GiB, and the largest device has 20.00 GiB;"));
  task.tables[0].embedding_dim = 8;
  EXPECT_THAT(
      refusal_of_rows(task, {}),
      HasSubstr("cannot be cut below 4 columns, as \"allow\" does not name \"rows\"; that"));
}

RC_GTEST_PROP(RowsForMemoryProperty, WhereAPlanWithRowsFitsOneIsFound, ()) {
  const Simulator simulator =
      make_simulator(*arbitrary_task(*rc::gen::element(0.67, 0.75, 0.8, 0.9)), arbitrary_compute());
  RC_PRE(!fit_with_rows(simulator.task()).empty());
  PlannerOptions options;
  options.cuts = {};
  options.steps = 500;
  const PlanningResult result = NeuroShardPlanner().plan(simulator, options);
  RC_ASSERT(violations(simulator.task(), result.plan).empty());
  RC_ASSERT(simulator.cost(result.plan).cost_ms == result.predicted.cost_ms);
}

}  // namespace
}  // namespace neuroshard
