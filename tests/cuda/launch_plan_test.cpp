// How work is dealt out: everything once, nothing twice, evenly, in 64 bits.
#include "neuroshard/collect/compute/cuda/launch_plan.h"

#include <gtest/gtest.h>

#include "neuroshard/collect/compute/cuda/lookup_keys.h"
#include "neuroshard/collect/compute/cuda/pooling.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard::cuda {
namespace {

constexpr std::int64_t kResident = 132 * 2048;  // an H200

OperatorTable table(std::int64_t rows, std::int64_t columns, DataType type = DataType::fp32,
                    std::uintptr_t address = 256) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return {reinterpret_cast<void*>(address), nullptr, rows, columns, type};
}

DeviceLookups lookups(std::int64_t count, std::int64_t longest) {
  return {nullptr, nullptr, count, longest};
}

TEST(LaunchPlan, VectorsAreAsWideAsAlignmentAllows) {
  const auto elements = [](const OperatorTable& first, const OperatorTable& second) {
    const std::vector<OperatorTable> tables{first, second};
    const std::vector<DeviceLookups> batch(2, lookups(8, 1));
    return plan_launches(tables, batch, 8, kResident).tables[1].vector_elements;
  };
  const OperatorTable other = table(10, 4);
  EXPECT_EQ(elements(other, table(10, 16)), 4);
  EXPECT_EQ(elements(other, table(10, 16, DataType::fp16)), 8);
  EXPECT_EQ(elements(other, table(10, 12, DataType::fp16)), 4) << "rows of 24 bytes";
  EXPECT_EQ(elements(other, table(10, 16, DataType::fp16, 264)), 4) << "rows from 8-byte addresses";
  EXPECT_EQ(elements(other, table(10, 10)), 1);
  EXPECT_EQ(elements(other, table(10, 16, DataType::fp32, 260)), 1) << "rows from 4-byte addresses";
  EXPECT_EQ(elements(table(10, 3), table(10, 16)), 1) << "its outputs begin at column 3";
}

TEST(LaunchPlan, BlocksFollowEachOtherAndKnowTheirTables) {
  const std::vector<OperatorTable> tables{table(100, 128), table(50, 4), table(7, 1024)};
  const std::vector<DeviceLookups> batch{lookups(1'000'000, 20), lookups(0, 0),
                                         lookups(3'000'000, 60)};
  const LaunchPlan plan = plan_launches(tables, batch, 65'536, kResident);
  for (std::int64_t block = 0; block < plan.pooling_blocks; ++block) {
    const int t = table_of_block(plan.pooling.data(), 3, block);
    const PoolingPlan& pooling = plan.pooling[t];
    ASSERT_GE(block, pooling.first_block);
    ASSERT_LT(task_of_group(pooling, block, 0), pooling.num_ranges * pooling.num_tiles)
        << "a block with nothing to do";
  }
  EXPECT_EQ(plan.pooling[2].num_tiles, 8);
  EXPECT_EQ(plan.key_blocks, 245 + 733);
  EXPECT_EQ(table_of_block(plan.keys.data(), 3, 244), 0);
  EXPECT_EQ(table_of_block(plan.keys.data(), 3, 245), 2) << "the second has no lookups";
}

TEST(LaunchPlan, TablesOfAKindFollowEachOtherAndKeepTheirPlaceInTheOutput) {
  const std::vector<OperatorTable> tables{table(10, 16, DataType::fp16), table(20, 8),
                                          table(30, 12, DataType::fp16), table(40, 16),
                                          table(50, 24, DataType::fp16)};
  std::vector<DeviceLookups> batch;
  for (std::int64_t count : {100, 200, 300, 400, 500}) batch.push_back(lookups(count, 5));
  const LaunchPlan plan = plan_launches(tables, batch, 64, kResident);
  // Rows of 24 bytes are of the last kind.
  std::vector<std::int64_t> column_starts;
  std::vector<std::int64_t> first_lookups;
  std::vector<std::int64_t> first_rows;
  for (const TableLayout& layout : plan.tables) {
    column_starts.push_back(layout.column_start);
    first_lookups.push_back(layout.first_lookup);
    first_rows.push_back(layout.first_row);
  }
  EXPECT_EQ(column_starts, (std::vector<std::int64_t>{16, 36, 0, 52, 24}));
  EXPECT_EQ(first_lookups, (std::vector<std::int64_t>{0, 200, 600, 700, 1200}));
  EXPECT_EQ(first_rows, (std::vector<std::int64_t>{0, 20, 60, 70, 120}));
  ASSERT_EQ(plan.kinds.size(), 3u);
  std::int64_t next_block = 0;
  int next_table = 0;
  for (const KindTables& kind : plan.kinds) {
    EXPECT_EQ(kind.first, next_table);
    next_table += kind.count;
    for (int t = kind.first; t < next_table; ++t) EXPECT_EQ(plan.tables[t].kind(), kind.kind);
    const BlockRange blocks = blocks_of_kind(plan.pooling, plan.pooling_blocks, kind);
    EXPECT_EQ(blocks.first, next_block);
    EXPECT_GT(blocks.count, 0);
    next_block += blocks.count;
  }
  EXPECT_EQ(next_table, 5);
  EXPECT_EQ(next_block, plan.pooling_blocks);
}

TEST(LaunchPlan, UnevenTablesGetTasksOfOneSize) {
  // Pooling factors 1 and 100 at 128 columns: tasks read about as many rows.
  const std::vector<OperatorTable> tables{table(1'000'000, 128), table(1'000'000, 128)};
  const std::vector<DeviceLookups> batch{lookups(65'536, 1), lookups(6'553'600, 100)};
  const LaunchPlan plan = plan_launches(tables, batch, 65'536, kResident);
  const auto rows_of_task = [&](int t) {
    return static_cast<double>(plan.tables[t].num_lookups + plan.batch_size) /
           static_cast<double>(plan.pooling[t].num_ranges);
  };
  EXPECT_NEAR(rows_of_task(0) / rows_of_task(1), 1.0, 0.3);
  EXPECT_EQ(plan.pooling_partials, 0) << "one launch is enough";
}

TEST(LaunchPlan, OneLongBagIsManyTasks) {
  const std::vector<OperatorTable> tables{table(1'000'000, 128)};
  const std::vector<DeviceLookups> batch{lookups(10'000'000, 10'000'000)};
  const LaunchPlan plan = plan_launches(tables, batch, 65'536, kResident);
  EXPECT_TRUE(plan.pooling[0].splits_bags);
  EXPECT_GT(plan.pooling[0].num_ranges, 8'000);
  EXPECT_LE(plan.pooling[0].num_ranges, 16 * 1024);
}

TEST(LaunchPlan, EveryLevelIsSmallerAndTheLastLeavesNothing) {
  const std::vector<OperatorTable> tables{table(std::int64_t{1} << 33, 128), table(1, 4)};
  const std::vector<DeviceLookups> batch{lookups(std::int64_t{5} << 30, 100'000),
                                         lookups(65'536, 1)};
  const LaunchPlan plan = plan_launches(tables, batch, 65'536, kResident);
  ASSERT_GT(plan.levels.size(), 1u);
  for (std::size_t l = 1; l < plan.levels.size(); ++l) {
    EXPECT_LT(plan.levels[l].num_items, plan.levels[l - 1].num_items);
  }
  for (const ReductionPlan& reduction : plan.levels.back().tables) {
    EXPECT_LE(reduction.num_segments, 1);
  }
  EXPECT_EQ(plan.total_lookups, (std::int64_t{5} << 30) + 65'536) << "beyond 32 bits";
  EXPECT_EQ(plan.key_bits.row_bits, 34);
  EXPECT_EQ(plan.key_bits.bag_bits, 16);
  EXPECT_EQ(plan.tables[1].first_row, std::int64_t{1} << 33);
}

TEST(LaunchPlan, RefusesKeysBeyond64Bits) {
  const std::vector<OperatorTable> tables{table(std::int64_t{1} << 42, 4)};
  const std::vector<DeviceLookups> batch{lookups(1, 1)};
  EXPECT_THROW((void)plan_launches(tables, batch, std::int64_t{1} << 30, kResident), InputError);
}

TEST(LaunchPlan, PathsThroughBagsMeetEveryLookupAndEveryEndOnce) {
  const std::vector<std::int64_t> offsets{0, 0, 3, 3, 4, 4, 4, 10, 10};
  PathPoint before{};
  for (std::int64_t steps = 1; steps <= 18; ++steps) {
    const PathPoint point = point_on_path(offsets.data(), 8, 10, steps);
    EXPECT_EQ(point.bag + point.lookup, steps);
    EXPECT_EQ((point.bag - before.bag) + (point.lookup - before.lookup), 1);
    EXPECT_GE(point.lookup, offsets[point.bag]) << "a lookup before the end of the last bag";
    if (point.bag < 8) {
      EXPECT_LE(point.lookup, offsets[point.bag + 1]);
    }
    before = point;
  }
  EXPECT_EQ(before.bag, 8);
}

TEST(LookupKeys, EveryLookupFindsItsBagFromAnyGuess) {
  const std::vector<std::int64_t> offsets{0, 0, 3, 3, 4, 4, 4, 10, 10};
  const std::vector<std::int64_t> expected{1, 1, 1, 3, 6, 6, 6, 6, 6, 6};
  for (std::int64_t lookup = 0; lookup < 10; ++lookup) {
    for (std::int64_t guess = 0; guess <= 7; ++guess) {
      EXPECT_EQ(bag_of_lookup(offsets.data(), 0, 7, guess, lookup), expected[lookup]) << guess;
      const std::int64_t bag = expected[lookup];
      EXPECT_EQ(bag_of_lookup(offsets.data(), bag, 7, std::max(guess, bag), lookup), bag) << guess;
      EXPECT_EQ(bag_of_lookup(offsets.data(), 0, bag, std::min(guess, bag), lookup), bag) << guess;
    }
  }
}

TEST(LookupKeys, EveryLookupOfManyBagsFindsItsBag) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t bags = random.integer(1, 300);
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int64_t> expected;
    for (std::int64_t bag = 0; bag < bags; ++bag) {
      const std::int64_t length = random.uniform() < 0.3 ? 0 : random.integer(0, 1 + round % 40);
      expected.insert(expected.end(), static_cast<std::size_t>(length), bag);
      offsets.push_back(offsets.back() + length);
    }
    for (std::size_t lookup = 0; lookup < expected.size(); ++lookup) {
      const std::int64_t guess = random.integer(0, bags - 1);
      ASSERT_EQ(
          bag_of_lookup(offsets.data(), 0, bags - 1, guess, static_cast<std::int64_t>(lookup)),
          expected[lookup])
          << guess << " of " << bags;
    }
  }
}

}  // namespace
}  // namespace neuroshard::cuda
