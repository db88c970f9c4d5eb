// The standard reference sets are always the same, and can be measured wherever sets can.
#include "neuroshard/collect/compute/reference_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "neuroshard/collect/compute/measure_sets.h"
#include "tests/collect/tiny_collection.h"

namespace neuroshard {
namespace {

TEST(ReferenceSetsTest, AreSixteenOfValidTables) {
  const ReferenceSets reference_sets = make_reference_sets(Json::Object{});
  ASSERT_EQ(reference_sets.sets.size(), 16u);
  std::set<std::int64_t> ids;
  for (const Table& table : reference_sets.tables) {
    EXPECT_NO_THROW(validate(table, table.name));
    EXPECT_EQ(table.data_type, DataType::fp32);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    const PieceSet& set = reference_sets.sets[i];
    EXPECT_LT(set.id, 0) << "no sample's";
    EXPECT_TRUE(ids.insert(set.id).second);
    EXPECT_FALSE(set.pieces.empty());
    for (const Piece& piece : set.pieces) {
      EXPECT_EQ(piece.num_columns, set.table_of(piece).embedding_dim);
    }
    EXPECT_EQ(set.optimizer, i < 8 ? Optimizer::sgd : Optimizer::rowwise_adagrad);
    EXPECT_EQ(set.pieces, reference_sets.sets[i % 8].pieces)
        << "one kind of work with both optimizers";
  }
}

TEST(ReferenceSetsTest, TheNameSaysWhatTheirTimesDependOn) {
  const auto name = [](const Json& operator_info) {
    return make_reference_sets(operator_info).name;
  };
  EXPECT_EQ(name(Json::Object{}), "reference-1");
  EXPECT_EQ(name(Json::Object{{"quantile", 0.25}, {"arena_bytes", 1024}, {"version", 1}}),
            "reference-1, arena_bytes 1024, quantile 0.25");
  EXPECT_EQ(name(Json::Object{{"name", "neuroshard-cpu"}, {"quantile", 0.25}}),
            "reference-1, quantile 0.25");
  EXPECT_EQ(name(Json::Object{{"name", "another"}, {"quantile", 0.25}}),
            "reference-1, another, quantile 0.25");
  const ReferenceSets halves =
      make_reference_sets(Json::Object{{"quantile", 0.25}}, DataType::fp16);
  EXPECT_EQ(halves.name, "reference-1, quantile 0.25, data_type fp16");
  for (const Table& table : halves.tables) EXPECT_EQ(table.data_type, DataType::fp16);
}

TEST(ReferenceSetsTest, KeepTheirTablesWhenTheyAreMoved) {
  ReferenceSets first = make_reference_sets(Json::Object{});
  const ReferenceSets moved = std::move(first);
  for (const PieceSet& set : moved.sets) EXPECT_EQ(set.tables.data(), moved.tables.data());
}

TEST(ReferenceSetsTest, TakeTimeOnTheCpu) {
  const auto backend = cpu_backend(testing_collection::tiny_benchmark(), 1).make();
  const ReferenceSets reference_sets = make_reference_sets(Json::Object{});
  std::size_t begun = 0;
  std::vector<double> times;
  measure_sets(
      *backend, MeasuringOptions{.in_flight = 1, .reference_sets = reference_sets.sets},
      [&]() -> std::optional<PieceSet> {
        if (begun > 0) return std::nullopt;
        PieceSet set = reference_sets.sets[begun++];
        set.id = 0;
        return set;
      },
      [&](const PieceSetResult& result) { times = result.measurement.value().reference_ms; });
  EXPECT_EQ(times.size(), 16u);
  EXPECT_THAT(times, testing::Each(testing::Gt(0.0)));
}

}  // namespace
}  // namespace neuroshard
