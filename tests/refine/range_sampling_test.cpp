// Sets that are priced without being measured stay within the model's range.
#include "neuroshard/refine/range_sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "neuroshard/cost/compute/piece_work.h"

namespace neuroshard {
namespace {

TrainedRange some_range() {
  TrainedRange range;
  range.min_batch_size = 256;
  range.max_batch_size = 16'384;
  range.min_columns = 8;
  range.max_columns = 256;
  range.max_pieces = 12;
  range.optimizers = {Optimizer::rowwise_adagrad};
  range.data_types = {DataType::fp32};
  return range;
}

TEST(RangeSampling, BatchSizesAreNeitherTinyNorHugeNorOutsideOfTheRange) {
  TrainedRange range = some_range();
  EXPECT_EQ(batch_size_at(range, 0.0), 256);
  EXPECT_EQ(batch_size_at(range, 0.5), 2048);
  EXPECT_EQ(batch_size_at(range, 1.0), 16'384);
  range.min_batch_size = 1;
  range.max_batch_size = std::int64_t{1} << 40;
  EXPECT_EQ(batch_size_at(range, 0.0), 64);
  EXPECT_EQ(batch_size_at(range, 1.0), 131'072);
  range.min_batch_size = range.max_batch_size = 7;
  EXPECT_EQ(batch_size_at(range, 0.3), 7);
}

TEST(RangeSampling, TheJoinOfTwoRangesHasWhatEachHas) {
  TrainedRange other = some_range();
  other.min_batch_size = 64;
  other.max_columns = 1024;
  other.max_pieces = 40;
  other.max_hits_per_row = 9.0;
  other.optimizers = {Optimizer::sgd, Optimizer::rowwise_adagrad};
  for (const TrainedRange& range : {joined(some_range(), other), joined(other, some_range())}) {
    EXPECT_EQ(range.min_batch_size, 64);
    EXPECT_EQ(range.max_batch_size, 16'384);
    EXPECT_EQ(range.min_columns, 8);
    EXPECT_EQ(range.max_columns, 1024);
    EXPECT_EQ(range.max_pieces, 40);
    EXPECT_EQ(range.max_hits_per_row, 9.0);
    EXPECT_EQ(range.optimizers.size(), 2u);
    EXPECT_EQ(range.data_types, std::vector{DataType::fp32});
  }
}

/// Eigen compares matrices of the same shape alone; other seeds draw other numbers of pieces.
std::vector<float> feature_values(const ComputeDataset& sets) {
  return {sets.features.data(), sets.features.data() + sets.features.size()};
}

TEST(RangeSampling, SetsHaveTheRangesPiecesAndAreTheSameForASeed) {
  const TrainedRange range = some_range();
  const ComputeDataset sets = sets_within(range, 205, 1);
  ASSERT_EQ(sets.size(), 205u);
  EXPECT_EQ(sets.num_known(), 205u);
  const auto& names = feature_names(FeatureSchema::work);
  const auto row = [&](const char* name) {
    return sets.features.row(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_GE(row("log2_num_columns").minCoeff(), 3.0F);
  EXPECT_LE(row("log2_num_columns").maxCoeff(), 8.0F);
  EXPECT_GE(row("log2_batch_size").minCoeff(), 8.0F);
  EXPECT_LE(row("log2_batch_size").maxCoeff(), 14.0F);
  EXPECT_EQ(row("rowwise_adagrad").minCoeff(), 1.0F);
  EXPECT_EQ(row("fp16").maxCoeff(), 0.0F);
  std::set<float> batches;
  const auto batch_of_piece = row("log2_batch_size");
  for (Eigen::Index i = 0; i < batch_of_piece.size(); ++i) batches.insert(batch_of_piece[i]);
  EXPECT_GE(batches.size(), 6u);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    EXPECT_LE(sets.first_piece[i + 1] - sets.first_piece[i], 12);
  }
  EXPECT_EQ(feature_values(sets_within(range, 205, 1)), feature_values(sets));
  EXPECT_NE(feature_values(sets_within(range, 205, 2)), feature_values(sets));
  EXPECT_EQ(sets_within(range, 3, 1).size(), 3u);
}

}  // namespace
}  // namespace neuroshard
