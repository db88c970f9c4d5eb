// Plans of rectangles and copies: which are valid, and what is said of the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/sharding_plan.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// "a" of 100 rows and 16 columns, "b" of 10 rows and 8 columns, on two devices.
Task two_tables() {
  Task task;
  task.batch_size = 64;
  task.tables = {make_table("a", 100, 16), make_table("b", 10, 8)};
  task.topology = make_topology(2, 2, 1'000'000);
  return task;
}

/// Columns [column, column + columns) of rows [row, row + rows) of table "a".
Shard of_a(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
           int device = 0) {
  return {0, column, columns, device, row, rows};
}

/// Of table "a" alone, "b" is on every device.
std::vector<std::string> found(const std::vector<Shard>& shards, const Task& task = two_tables()) {
  return violations(task, {shards, {1}});
}

TEST(Rectangles, TilingsAreValid) {
  EXPECT_THAT(found({of_a(0, 30, 0, 16), of_a(30, 70, 0, 16, 1)}), IsEmpty());
  EXPECT_THAT(found({of_a(30, 70, 8, 8), of_a(0, 30, 0, 16), of_a(30, 70, 0, 8, 1)}), IsEmpty());
  // A pinwheel, which no cut from side to side could make.
  EXPECT_THAT(found({of_a(0, 40, 0, 12), of_a(0, 60, 12, 4), of_a(60, 40, 4, 12),
                     of_a(40, 60, 0, 4), of_a(40, 20, 4, 8)}),
              IsEmpty());
  // All rows, told and not told.
  EXPECT_THAT(found({of_a(0, 100, 0, 8), {0, 8, 8, 1}}), IsEmpty());
}

TEST(Rectangles, SlicesOfRowsAreCounted) {
  const auto slices = [](const std::vector<Shard>& shards) {
    const ShardingPlan plan{shards, {1}};
    EXPECT_EQ(plan.has_row_slices(), plan.num_row_slices() > 0);
    return plan.num_row_slices();
  };
  EXPECT_EQ(slices({}), 0);
  EXPECT_EQ(slices({{0, 0, 8, 0}, {0, 8, 8, 1}}), 0);
  EXPECT_EQ(slices({of_a(0, 30, 0, 16), of_a(30, 70, 0, 8), {0, 8, 8, 1, 30, 70}}), 3);
}

TEST(Rectangles, GapsAndOverlapsAreNamed) {
  EXPECT_THAT(found({of_a(0, 30, 0, 16), of_a(40, 60, 0, 16)}),
              ElementsAre("table \"a\": rows 30 to 39, columns 0 to 15 are on no device"));
  EXPECT_THAT(found({of_a(0, 30, 0, 16), of_a(30, 70, 0, 8), of_a(30, 70, 12, 4)}),
              ElementsAre("table \"a\": rows 30 to 99, columns 8 to 11 are on no device"));
  EXPECT_THAT(found({of_a(0, 60, 0, 16), of_a(50, 50, 0, 16)}),
              ElementsAre("table \"a\": rows 50 to 59, columns 0 to 15 are placed more than once"));
  EXPECT_THAT(found({{0, 0, 16, 0}, of_a(99, 1, 4, 4)}),
              ElementsAre("table \"a\": rows 99 to 99, columns 4 to 7 are placed more than once"));
  EXPECT_THAT(found({of_a(0, 99, 0, 16)}),
              ElementsAre("table \"a\": rows 99 to 99, columns 0 to 15 are on no device"));
}

TEST(Rectangles, EachRangeOfRowsThatIsWrongIsNamedOnce) {
  EXPECT_THAT(found({of_a(10, 20, 0, 16), of_a(30, 30, 0, 8), of_a(50, 50, 0, 8)}),
              ElementsAre("table \"a\": rows 0 to 9, columns 0 to 15 are on no device",
                          "table \"a\": rows 30 to 49, columns 8 to 15 are on no device",
                          "table \"a\": rows 50 to 59, columns 0 to 7 are placed more than once",
                          "table \"a\": rows 50 to 59, columns 8 to 15 are on no device",
                          "table \"a\": rows 60 to 99, columns 8 to 15 are on no device"));
  // Whichever slices the other columns are cut in.
  EXPECT_THAT(found({of_a(0, 50, 0, 8), of_a(50, 50, 0, 8)}),
              ElementsAre("table \"a\": columns 8 to 15 are on no device"));
}

TEST(Rectangles, ManyWrongRangesAreNotAllNamed) {
  std::vector<Shard> every_other;
  for (int row = 0; row < 100; row += 2) every_other.push_back(of_a(row, 1, 0, 16));
  const std::vector<std::string> some = found(every_other);
  EXPECT_EQ(some.size(), 21u);
  EXPECT_EQ(some.back(), "table \"a\": rows 41 to 99, there is more like that");
  // However many slices overlap, a range is told once.
  std::vector<Shard> nested;
  for (int row = 0; row < 100; ++row) nested.push_back(of_a(row, 100 - row, 0, 16));
  EXPECT_THAT(
      found(nested),
      ElementsAre("table \"a\": rows 1 to 15, columns 0 to 15 are placed more than once",
                  "table \"a\": rows 16 to 99, columns are placed more than once, and there "
                  "may be more like that"));
}

TEST(Rectangles, RowsOutOfRange) {
  EXPECT_THAT(found({of_a(90, 11, 0, 16), of_a(-1, 5, 0, 16), of_a(0, -1, 0, 16)}),
              ElementsAre("shards[0]: expected rows of \"a\" within 0 to 100, got 11 from 90",
                          "shards[1]: expected rows of \"a\" within 0 to 100, got 5 from -1",
                          "shards[2]: expected rows of \"a\" within 0 to 100, got -1 from 0"));
  EXPECT_THAT(found({{0, 0, 16, 0, 5, 0}}),
              ElementsAre("shards[0]: expected rows of \"a\" within 0 to 100, got 100 from 5"));
}

TEST(Rectangles, OnlyAllowedCuts) {
  const std::vector<Shard> rows{of_a(0, 50, 0, 16), of_a(50, 50, 0, 16)};
  const std::vector<Shard> columns{{0, 0, 8, 0}, {0, 8, 8, 0}};
  Task task = two_tables();
  task.allow = {.columns = false, .rows = true, .replicas = true};
  EXPECT_THAT(found(rows, task), IsEmpty());
  EXPECT_THAT(found(columns, task),
              ElementsAre("shards[0]: expected \"a\" with all its columns, as \"allow\" does not "
                          "name \"columns\", got 8 of 16",
                          "shards[1]: expected \"a\" with all its columns, as \"allow\" does not "
                          "name \"columns\", got 8 of 16"));
  EXPECT_FALSE(can_cut(Table{.embedding_dim = 16, .allow = {.columns = false}}, 16));

  task.allow = {};
  task.tables[0].allow = {.columns = true, .rows = false, .replicas = true};
  EXPECT_THAT(found(columns, task), IsEmpty());
  EXPECT_THAT(found({rows[0]}, task),
              ElementsAre("shards[0]: expected \"a\" with all its rows, as \"allow\" does not "
                          "name \"rows\", got 50 of 100"));

  task.tables[1].allow.replicas = false;
  EXPECT_THAT(
      found(columns, task),
      ElementsAre("replicated_tables[0]: expected \"b\" without copies, as \"allow\" does not "
                  "name \"replicas\""));
}

TEST(Rectangles, SlicesOfFewerRowsThanTheTableAllows) {
  Task task = two_tables();
  task.tables[0].min_shard_rows = 40;
  EXPECT_THAT(found({of_a(0, 60, 0, 16), of_a(60, 40, 0, 16)}, task), IsEmpty());
  EXPECT_THAT(found({of_a(0, 61, 0, 16), of_a(61, 39, 0, 16)}, task),
              ElementsAre("shards[1]: expected slices of \"a\" of at least 40 rows, got 39"));
}

TEST(Rectangles, ReplicatedTables) {
  const Task task = two_tables();
  EXPECT_THAT(violations(task, {{}, {0, 1}}), IsEmpty());
  EXPECT_THAT(violations(task, {{{0, 0, 16, 0}, {1, 0, 8, 1}}, {1}}),
              ElementsAre("shards[1]: expected none of \"b\", which is on every device"));
  EXPECT_THAT(violations(task, {{{0, 0, 16, 0}}, {1, 2, 1}}),
              ElementsAre("replicated_tables[1]: expected one of 2 tables, got index 2",
                          "replicated_tables[2]: expected \"b\" once, got it again"));
}

TEST(Rectangles, MemoryOfSlicesAndCopies) {
  Task task = two_tables();
  task.optimizer = Optimizer::rowwise_adagrad;
  const ShardingPlan plan{{of_a(0, 30, 0, 8), of_a(30, 70, 0, 8, 1), {0, 8, 8, 1}}, {1}};
  const std::int64_t row = 8 * 4 + 4;
  EXPECT_THAT(device_memory(task, plan), ElementsAre(30 * row + 10 * row, 170 * row + 10 * row));
  task.topology.memory_bytes = {40 * row - 1, 180 * row};
  EXPECT_THAT(violations(task, plan),
              ElementsAre(testing::StartsWith("device 0: expected at most 1439 bytes")));
}

TEST(Rectangles, ACopyThatFitsOnNotEveryDevice) {
  Task task = two_tables();
  task.topology.memory_bytes = {1 << 20, 100};
  EXPECT_THAT(violations(task, {{{0, 0, 16, 0}}, {1}}),
              ElementsAre(testing::StartsWith(
                  "replicated_tables[0]: expected at most 100 bytes (100 B), the memory of the "
                  "smallest device, got a copy of \"b\" of ")));
}

TEST(Rectangles, APieceHasTheShareOfItsRows) {
  const Task task = two_tables();
  EXPECT_EQ(piece_of(task, {1, 4, 4, 0}), (Piece{1, 4}));
  EXPECT_EQ(piece_of(task, of_a(30, 25, 4, 12)), (Piece{0, 12, 0.25}));
}

/// Cuts a rectangle of a table again and again, from side to side.
void cut(const Table& table, const Shard& shard, int depth, std::vector<Shard>& pieces) {
  const std::int64_t rows = shard.rows_of(table);
  const bool by_rows = *rc::gen::arbitrary<bool>();
  if (depth > 0 && by_rows && rows > 1) {
    Shard upper = shard;
    Shard lower = shard;
    upper.num_rows = *rc::gen::inRange<std::int64_t>(1, rows);
    lower.row_offset += upper.num_rows;
    lower.num_rows = rows - upper.num_rows;
    cut(table, upper, depth - 1, pieces);
    cut(table, lower, depth - 1, pieces);
  } else if (depth > 0 && !by_rows && shard.num_columns > 4) {
    Shard left = shard;
    Shard right = shard;
    left.num_columns = 4 * *rc::gen::inRange<std::int64_t>(1, shard.num_columns / 4);
    right.column_offset += left.num_columns;
    right.num_columns = shard.num_columns - left.num_columns;
    cut(table, left, depth - 1, pieces);
    cut(table, right, depth - 1, pieces);
  } else {
    pieces.push_back(shard);
  }
}

/// Which elements are how often on a device, one by one.
bool tiles(const Table& table, const std::vector<Shard>& shards) {
  std::vector<int> times(table.num_embeddings * table.embedding_dim, 0);
  for (const Shard& shard : shards) {
    for (std::int64_t row = 0; row < shard.rows_of(table); ++row) {
      for (std::int64_t column = 0; column < shard.num_columns; ++column) {
        ++times[(shard.row_offset + row) * table.embedding_dim + shard.column_offset + column];
      }
    }
  }
  return std::all_of(times.begin(), times.end(), [](int count) { return count == 1; });
}

RC_GTEST_PROP(RectanglesProperty, ValidExactlyWhenEachElementIsOnceOnADevice, ()) {
  Task task;
  task.batch_size = 1;
  task.tables = {make_table("a", *rc::gen::inRange<std::int64_t>(1, 40),
                            4 * *rc::gen::inRange<std::int64_t>(1, 10))};
  task.topology = make_topology(1, 1, 1'000'000'000);
  const Table& table = task.tables[0];
  ShardingPlan plan;
  cut(table, {0, 0, table.embedding_dim, 0}, *rc::gen::inRange(0, 6), plan.shards);
  Random(*rc::gen::arbitrary<std::uint64_t>()).shuffle(plan.shards);
  RC_ASSERT(tiles(table, plan.shards));
  RC_ASSERT(violations(task, plan).empty());

  // A piece moved, grown, shrunk or left out, within the table.
  Shard& shard = plan.shards.front();
  const std::int64_t rows = shard.rows_of(table);
  shard.num_rows = *rc::gen::inRange<std::int64_t>(1, rows + 1);
  shard.row_offset = *rc::gen::inRange<std::int64_t>(0, table.num_embeddings - shard.num_rows + 1);
  shard.column_offset =
      4 * *rc::gen::inRange<std::int64_t>(0, (table.embedding_dim - shard.num_columns) / 4 + 1);
  if (*rc::gen::inRange(0, 4) == 0) plan.shards.erase(plan.shards.begin());
  RC_ASSERT(violations(task, plan).empty() == tiles(table, plan.shards));
}

}  // namespace
}  // namespace neuroshard
