// Sets of pieces: a function of seed and id, within memory, and of one kind of tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "neuroshard/core/sharding_plan.h"
#include "tests/collect/tiny_collection.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing_collection::tiny_sampling;

ComputeSamplingOptions arbitrary_sampling() {
  ComputeSamplingOptions options = tiny_sampling(*rc::gen::inRange(1, 30));
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.held_out_share = *rc::gen::element(0.0, 0.1, 0.5, 0.9);
  options.optimizer = *rc::gen::element(Optimizer::sgd, Optimizer::rowwise_adagrad);
  options.min_tables = *rc::gen::inRange(1, 4);
  options.max_tables = options.min_tables + *rc::gen::inRange(0, 12);
  options.dims = {4, 16, 128};
  // From just enough for the fewest of the largest pieces to plenty.
  const std::int64_t largest =
      shard_bytes(options.tables.back(), 128, Optimizer::rowwise_adagrad) * options.min_tables;
  options.memory_bytes = largest * *rc::gen::inRange<std::int64_t>(1, 10);
  return options;
}

RC_GTEST_PROP(SamplePieces, FitMemoryAndAreOfOneKindOfTables, ()) {
  const ComputeSamplingOptions options = arbitrary_sampling();
  const auto id = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  const std::vector<Piece> pieces = sample_pieces(options, id);
  RC_ASSERT(static_cast<int>(pieces.size()) >= options.min_tables);
  RC_ASSERT(static_cast<int>(pieces.size()) <= options.max_tables);
  std::int64_t bytes = 0;
  std::set<bool> kinds;
  for (const Piece& piece : pieces) {
    const Table& table = options.tables.at(piece.table);
    bytes += shard_bytes(table, piece.num_columns, options.optimizer);
    kinds.insert(is_held_out(table.name, options.held_out_share));
    RC_ASSERT(std::count(options.dims.begin(), options.dims.end(), piece.num_columns) == 1);
  }
  RC_ASSERT(bytes <= options.memory_bytes);
  RC_ASSERT(kinds.size() == 1u);
}

RC_GTEST_PROP(SamplePieces, DependOnSeedAndIdAlone, ()) {
  const ComputeSamplingOptions options = arbitrary_sampling();
  const auto id = *rc::gen::inRange<std::int64_t>(0, 1000);
  const auto pieces = sample_pieces(options, id);
  for (std::int64_t other = 0; other < 5; ++other) (void)sample_pieces(options, other);
  RC_ASSERT(sample_pieces(options, id) == pieces);
}

TEST(SamplePieces, DifferFromSampleToSampleAndSeedToSeed) {
  ComputeSamplingOptions options = tiny_sampling();
  std::set<std::vector<Piece>> distinct;
  for (std::int64_t id = 0; id < 200; ++id) {
    distinct.insert(sample_pieces(options, id));
  }
  EXPECT_GT(distinct.size(), 100u);
  const auto before = sample_pieces(options, 0);
  options.seed = 6;
  EXPECT_NE(sample_pieces(options, 0), before);
}

TEST(SamplePieces, AsManyAreHeldOutAsAskedFor) {
  const ComputeSamplingOptions options = tiny_sampling(200);
  int held_out_tables = 0;
  for (const Table& table : options.tables) {
    held_out_tables += is_held_out(table.name, options.held_out_share) ? 1 : 0;
  }
  EXPECT_NEAR(held_out_tables, 60, 30);  // more than four standard deviations
  int held_out_samples = 0;
  for (std::int64_t id = 0; id < 1000; ++id) {
    const int table = sample_pieces(options, id).front().table;
    held_out_samples += is_held_out(options.tables[table].name, options.held_out_share) ? 1 : 0;
  }
  EXPECT_NEAR(held_out_samples, 300, 65);
}

TEST(SamplePieces, ALargerShareHoldsOutTheSameTablesAndMore) {
  for (int t = 0; t < 500; ++t) {
    const std::string name = fmt::format("table {}", t);
    EXPECT_FALSE(is_held_out(name, 0.0));
    EXPECT_LE(is_held_out(name, 0.1), is_held_out(name, 0.3));
    EXPECT_LE(is_held_out(name, 0.3), is_held_out(name, 0.9));
  }
}

TEST(SamplePieces, SayWhenHardlyAnySetFits) {
  ComputeSamplingOptions options = tiny_sampling();
  options.memory_bytes = 799;  // the smallest piece is 50 rows of 4 fp32
  EXPECT_EQ(input_error([&] { (void)sample_pieces(options, 0); }),
            "memory: expected room for 1 piece of the pool, got 799 B");
}

}  // namespace
}  // namespace neuroshard
