// Validity of plans: each kind of violation is found, named with its numbers, and nothing else is.
#include "neuroshard/core/sharding_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <set>

#include "neuroshard/core/numbers/random.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_tasks::arbitrary_plan;
using testing_tasks::arbitrary_task;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// "a" of 16 columns, "odd" of 10, on two devices of ample memory.
Task tables_a_and_odd() {
  Task task;
  task.batch_size = 64;
  task.tables = {make_table("a", 100, 16), make_table("odd", 10, 10)};
  task.topology = make_topology(2, 2, 1'000'000);
  return task;
}

std::vector<std::string> violations_of(const std::vector<Shard>& shards,
                                       const Task& task = tables_a_and_odd()) {
  return violations(task, {shards});
}

TEST(Violations, NoneInAValidPlan) {
  EXPECT_THAT(violations_of({{0, 0, 16, 0}, {1, 0, 10, 0}}), IsEmpty());
  EXPECT_THAT(violations_of({{1, 0, 10, 1}, {0, 12, 4, 1}, {0, 0, 12, 0}}),
              IsEmpty());  // any order
  EXPECT_THAT(violations_of({{0, 0, 4, 0}, {0, 4, 4, 0}, {0, 8, 8, 0}, {1, 0, 10, 0}}), IsEmpty());
}

TEST(Violations, Gaps) {
  EXPECT_THAT(violations_of({{0, 4, 4, 0}, {0, 12, 4, 1}, {1, 0, 10, 0}}),
              ElementsAre("table \"a\": columns 0 to 3 are on no device",
                          "table \"a\": columns 8 to 11 are on no device"));
  EXPECT_THAT(violations_of({{0, 0, 12, 0}}),
              ElementsAre("table \"a\": columns 12 to 15 are on no device",
                          "table \"odd\": columns 0 to 9 are on no device"));
  EXPECT_THAT(violations_of({}), ElementsAre("table \"a\": columns 0 to 15 are on no device",
                                             "table \"odd\": columns 0 to 9 are on no device"));
}

TEST(Violations, Overlaps) {
  EXPECT_THAT(violations_of({{0, 0, 8, 0}, {0, 4, 12, 1}, {1, 0, 10, 0}}),
              ElementsAre("table \"a\": columns 4 to 7 are placed more than once"));
  EXPECT_THAT(violations_of({{0, 0, 16, 0}, {0, 0, 16, 1}, {1, 0, 10, 0}}),
              ElementsAre("table \"a\": columns 0 to 15 are placed more than once"));
  // A narrow piece inside a wide one does not hide what the wide one covers.
  EXPECT_THAT(violations_of({{0, 0, 12, 0}, {0, 4, 4, 1}, {0, 12, 4, 0}, {1, 0, 10, 0}}),
              ElementsAre("table \"a\": columns 4 to 7 are placed more than once"));
}

TEST(Violations, CutsOffMultiplesOfFour) {
  EXPECT_THAT(violations_of({{0, 0, 6, 0}, {0, 6, 10, 1}, {1, 0, 10, 0}}),
              ElementsAre("shards[0]: expected cuts of \"a\" at multiples of 4 columns, got 6 from "
                          "0",
                          "shards[1]: expected cuts of \"a\" at multiples of 4 columns, got 10 "
                          "from 6"));
  EXPECT_THAT(violations_of({{0, 2, 4, 0}, {1, 0, 10, 0}}),
              ElementsAre("shards[0]: expected cuts of \"a\" at multiples of 4 columns, got 4 "
                          "from 2"));
}

TEST(Violations, TablesThatMustStayWhole) {
  EXPECT_THAT(violations_of({{0, 0, 16, 0}, {1, 0, 4, 0}, {1, 4, 6, 1}}),
              ElementsAre("shards[1]: expected \"odd\" whole, as its dimension 10 is no multiple "
                          "of 4, got 4 columns",
                          "shards[2]: expected \"odd\" whole, as its dimension 10 is no multiple "
                          "of 4, got 6 columns"));
  EXPECT_FALSE(can_cut(10));
  EXPECT_FALSE(can_cut(4));
  EXPECT_TRUE(can_cut(8));
  EXPECT_TRUE(can_cut(12));
}

TEST(Violations, PiecesNarrowerThanTheTableAllows) {
  Task task;
  task.batch_size = 1;
  task.tables = {make_table("a", 10, 64)};
  task.tables[0].min_shard_columns = 30;  // 32, as cuts are at multiples of 4
  task.topology = make_topology(2, 2, 1 << 20);
  EXPECT_THAT(violations(task, {{{0, 0, 32, 0}, {0, 32, 32, 1}}}), IsEmpty());
  EXPECT_THAT(violations(task, {{{0, 0, 28, 0}, {0, 28, 36, 1}}}),
              ElementsAre("shards[0]: expected pieces of \"a\" of at least 32 columns, got 28"));
  EXPECT_TRUE(can_cut(task.tables[0], 64));
  task.tables[0].min_shard_columns = 33;
  EXPECT_FALSE(can_cut(task.tables[0], 64));
}

TEST(Violations, MemoryCountsWhatPiecesTakeBeyondTheirRows) {
  Task task;
  task.batch_size = 1;
  task.tables = {make_table("a", 10, 64)};
  task.tables[0].extra_bytes_per_shard = 100;
  task.tables[0].extra_bytes_per_column = 3;
  task.topology = make_topology(2, 2, 1 << 20);
  const ShardingPlan plan{{{0, 0, 24, 0}, {0, 24, 40, 1}}};
  EXPECT_THAT(device_memory(task, plan),
              ElementsAre(24 * 4 * 10 + 100 + 24 * 3, 40 * 4 * 10 + 100 + 40 * 3));
}

TEST(Violations, IndicesOutOfRange) {
  EXPECT_THAT(violations_of({{2, 0, 16, 0}, {-1, 0, 1, 0}}),
              ElementsAre("shards[0].table: expected one of 2 tables, got index 2",
                          "shards[1].table: expected one of 2 tables, got index -1"));
  EXPECT_THAT(violations_of({{0, 0, 16, 2}, {1, 0, 10, -1}}),
              ElementsAre("shards[0].device: expected 0 to 1, got 2",
                          "shards[1].device: expected 0 to 1, got -1"));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(violations_of(
                  {{0, 12, 8, 0}, {0, -4, 4, 0}, {0, 0, 0, 0}, {0, 4, kMost, 0}, {0, kMost, 4, 0}}),
              ElementsAre("shards[0]: expected columns of \"a\" within 0 to 16, got 8 from 12",
                          "shards[1]: expected columns of \"a\" within 0 to 16, got 4 from -4",
                          "shards[2]: expected columns of \"a\" within 0 to 16, got 0 from 0",
                          "shards[3]: expected columns of \"a\" within 0 to 16, got "
                          "9223372036854775807 from 4",
                          "shards[4]: expected columns of \"a\" within 0 to 16, got 4 from "
                          "9223372036854775807"));
}

TEST(Violations, MemoryCountsOptimizerStateOfEveryPiece) {
  Task task = tables_a_and_odd();
  task.optimizer = Optimizer::rowwise_adagrad;
  // Table "a": 100 rows of 16 fp32, and 4 bytes of state per row of each of the two pieces.
  task.topology.memory_bytes = {100 * (8 * 4 + 4), 100 * (8 * 4 + 4) + 10 * (10 * 4 + 4)};
  const std::vector<Shard> fits{{0, 0, 8, 0}, {0, 8, 8, 1}, {1, 0, 10, 1}};
  EXPECT_THAT(violations_of(fits, task), IsEmpty());
  EXPECT_THAT(device_memory(task, {fits}), ElementsAre(3600, 4040));
  task.topology.memory_bytes = {3599, 4039};
  EXPECT_THAT(violations_of(fits, task),
              ElementsAre("device 0: expected at most 3599 bytes (3.51 KiB), got 3600 (3.52 KiB)",
                          "device 1: expected at most 4039 bytes (3.94 KiB), got 4040 (3.95 KiB)"));
  task.optimizer = Optimizer::sgd;
  EXPECT_THAT(violations_of(fits, task), IsEmpty());
}

TEST(Violations, HalfPrecisionTakesHalfTheMemory) {
  Task task = tables_a_and_odd();
  task.tables[0].data_type = DataType::fp16;
  EXPECT_EQ(shard_bytes(task.tables[0], 16, Optimizer::sgd), 100 * 16 * 2);
  // The state stays fp32.
  EXPECT_EQ(shard_bytes(task.tables[0], 16, Optimizer::rowwise_adagrad), 100 * (16 * 2 + 4));
}

/// A random plan of a random task whose devices have room for all.
struct Case {
  Task task;
  ShardingPlan plan;
};

Case valid_case() {
  Case result;
  result.task = *arbitrary_task(1.0);
  for (std::int64_t& bytes : result.task.topology.memory_bytes) bytes = std::int64_t{1} << 50;
  result.plan = *arbitrary_plan(result.task);
  Random(*rc::gen::arbitrary<std::uint64_t>()).shuffle(result.plan.shards);
  return result;
}

RC_GTEST_PROP(ViolationsProperty, ValidPlansHaveNoneInAnyOrder, ()) {
  const Case valid = valid_case();
  RC_ASSERT(violations(valid.task, valid.plan).empty());
}

RC_GTEST_PROP(ViolationsProperty, EveryDamageIsFound, ()) {
  Case damaged = valid_case();
  std::vector<Shard>& shards = damaged.plan.shards;
  const auto at = *rc::gen::inRange<std::size_t>(0, shards.size());
  Shard& shard = shards[at];
  const std::int64_t dim = damaged.task.tables[shard.table].embedding_dim;
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      shards.erase(shards.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      shards.push_back(Shard(shard));
      break;
    case 2:
      shard.device = damaged.task.topology.world_size;
      break;
    case 3:
      shard.num_columns -= 1;
      break;
    case 4:
      shard.column_offset += dim;
      break;
    default:
      damaged.task.topology.memory_bytes[shard.device] =
          device_memory(damaged.task, damaged.plan)[shard.device] - 1;
  }
  RC_ASSERT(!violations(damaged.task, damaged.plan).empty());
}

RC_GTEST_PROP(ViolationsProperty, DeviceMemoryAddsUpToAllPieces, ()) {
  const Case valid = valid_case();
  std::int64_t expected = 0;
  for (const Shard& shard : valid.plan.shards) {
    expected +=
        shard_bytes(valid.task.tables[shard.table], shard.num_columns, valid.task.optimizer);
  }
  std::int64_t sum = 0;
  for (const std::int64_t bytes : device_memory(valid.task, valid.plan)) sum += bytes;
  RC_ASSERT(sum == expected);
}

RC_GTEST_PROP(SortShardsProperty, TheOrderDoesNotDependOnTheInput, ()) {
  const Case valid = valid_case();
  ShardingPlan sorted = valid.plan;
  sort_shards(sorted);
  ShardingPlan shuffled = valid.plan;
  Random(*rc::gen::arbitrary<std::uint64_t>()).shuffle(shuffled.shards);
  sort_shards(shuffled);
  RC_ASSERT(sorted.shards == shuffled.shards);
}

TEST(Violations, MemoryIsNotSummedPastItsEnd) {
  // 16 tables of 2^60 bytes, which are 0 modulo 2^64, on a device of one byte.
  Task task;
  task.batch_size = 64;
  ShardingPlan plan;
  for (int t = 0; t < 16; ++t) {
    task.tables.push_back(make_table(std::to_string(t), kMaxEmbeddings, kMaxEmbeddingDim));
    plan.shards.push_back({t, 0, kMaxEmbeddingDim, 0});
  }
  task.topology = make_topology(1, 1, 1);
  EXPECT_THAT(violations(task, plan), ElementsAre(testing::HasSubstr(
                                          "device 0: expected at most 1 bytes (1 B), got at least "
                                          "9223372036854775807")));
  for (std::size_t tables = 1; tables <= 16; ++tables) {
    plan.shards.resize(tables);
    EXPECT_GE(device_memory(task, plan)[0], std::int64_t{1} << 60);
    plan.shards.resize(16, {0, 0, kMaxEmbeddingDim, 0});
  }
}

}  // namespace
}  // namespace neuroshard
