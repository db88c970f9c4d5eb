// The samples that can be measured again, and the computation of the machine's drift.
#include "neuroshard/collect/compute/speed_controls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/io/compute_costs_io.h"
#include "tests/collect/tiny_collection.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

class SpeedControlsTest : public testing::Test {
 protected:
  SpeedControlsTest() {
    (void)collect_compute_costs(sampling_, testing_collection::tiny_benchmark(), 20, costs_, {});
  }

  [[nodiscard]] std::vector<SpeedControl> all(const std::vector<Table>& tables) const {
    return SpeedControls({costs_}, tables)
        .draw(sampling_.batch_size, sampling_.optimizer, 1000, Random(1));
  }

  TemporaryFolder folder_;
  ComputeSamplingOptions sampling_ = testing_collection::tiny_sampling();
  std::string costs_ = folder_.file("costs.jsonl");
};

TEST_F(SpeedControlsTest, AreTheSamplesOfTheFiles) {
  const ComputeCosts costs = read_compute_costs(costs_);
  const std::vector<SpeedControl> controls = all(sampling_.tables);
  ASSERT_EQ(controls.size(), 20u);
  double sum = 0.0;
  std::size_t pieces = 0;
  for (const ComputeCostSample& sample : costs.samples) {
    sum += sample.forward_ms + sample.backward_ms;
    pieces += sample.pieces.size();
  }
  for (const SpeedControl& control : controls) {
    EXPECT_GT(control.cost_ms, 0.0);
    sum -= control.cost_ms;
    pieces -= control.pieces.size();
  }
  EXPECT_NEAR(sum, 0.0, 1e-9);
  EXPECT_EQ(pieces, 0u);
}

TEST_F(SpeedControlsTest, TablesAreFoundByNameWhereverTheyAre) {
  std::vector<Table> tables = sampling_.tables;
  std::reverse(tables.begin(), tables.end());
  const auto controls = all(tables);
  const auto as_given = all(sampling_.tables);
  ASSERT_EQ(controls.size(), as_given.size());
  for (std::size_t i = 0; i < controls.size(); ++i) {
    for (std::size_t p = 0; p < controls[i].pieces.size(); ++p) {
      EXPECT_EQ(tables[controls[i].pieces[p].table].name,
                sampling_.tables[as_given[i].pieces[p].table].name);
      EXPECT_EQ(controls[i].pieces[p].num_columns, as_given[i].pieces[p].num_columns);
    }
  }
}

TEST_F(SpeedControlsTest, CostsNextToReferenceSetsAreThoseAtTheUsualSpeed) {
  ComputeCosts costs = read_compute_costs(costs_);
  costs.header.reference_sets = "some";
  costs.samples.resize(3, costs.samples.front());
  for (std::size_t i = 0; i < 3; ++i) {  // the same set, once in a slow minute, once in a fast one
    const double slowness = i == 0 ? 2.0 : i == 1 ? 1.0 : 0.5;
    costs.samples[i] = costs.samples.front();
    costs.samples[i].forward_ms = 3.0 * slowness;
    costs.samples[i].backward_ms = 5.0 * slowness;
    costs.samples[i].reference_ms = {2.0 * slowness, 8.0 * slowness};
  }
  const auto controls = SpeedControls({costs}, sampling_.tables)
                            .draw(sampling_.batch_size, sampling_.optimizer, 3, Random(1));
  ASSERT_EQ(controls.size(), 3u);
  for (const SpeedControl& control : controls) EXPECT_NEAR(control.cost_ms, 8.0, 1e-9);
}

TEST_F(SpeedControlsTest, SlicesStaySlices) {
  ComputeCosts costs = read_compute_costs(costs_);
  costs.samples.resize(1);
  costs.samples[0].pieces = {{3, 8, 0.25}, {1, 4}};
  const auto controls = SpeedControls({costs}, sampling_.tables)
                            .draw(sampling_.batch_size, sampling_.optimizer, 1, Random(1));
  ASSERT_EQ(controls.size(), 1u);
  std::vector<std::pair<std::string, double>> pieces;
  for (const Piece& piece : controls[0].pieces) {
    pieces.emplace_back(sampling_.tables[piece.table].name, piece.row_share);
  }
  EXPECT_THAT(pieces, testing::ElementsAre(testing::Pair(costs.header.tables[3].name, 0.25),
                                           testing::Pair(costs.header.tables[1].name, 1.0)));
}

TEST_F(SpeedControlsTest, SamplesOfTablesThatAreNotThereAreLeftOut) {
  const auto without_first = [&](const std::function<void(Table&)>& change) {
    std::vector<Table> tables = sampling_.tables;
    change(tables.front());
    std::size_t expected = 0;
    for (const ComputeCostSample& sample : read_compute_costs(costs_).samples) {
      expected += std::none_of(sample.pieces.begin(), sample.pieces.end(),
                               [](const Piece& piece) { return piece.table == 0; });
    }
    EXPECT_LT(expected, 20u);
    EXPECT_EQ(all(tables).size(), expected);
  };
  without_first([](Table& table) { table.name = "another"; });
  without_first([](Table& table) { table.num_embeddings += 1; });
  without_first([](Table& table) { table.pooling_factor *= 2.0; });
  without_first([](Table& table) { table.data_type = DataType::fp16; });
}

TEST_F(SpeedControlsTest, DrawsThoseOfTheTasksBatchAndOptimizer) {
  const SpeedControls controls({costs_}, sampling_.tables);
  EXPECT_EQ(controls.draw(32, Optimizer::sgd, 5, Random(1)).size(), 5u);
  EXPECT_TRUE(controls.draw(64, Optimizer::sgd, 5, Random(1)).empty());
  EXPECT_TRUE(controls.draw(32, Optimizer::rowwise_adagrad, 5, Random(1)).empty());
  EXPECT_THAT(input_error([&] { (void)SpeedControls({folder_.file("no")}, sampling_.tables); }),
              testing::HasSubstr("expected a readable file"));
}

TEST(MedianDrift, IsTheMiddleOrNone) {
  EXPECT_EQ(median_drift({}), 1.0);
  EXPECT_EQ(median_drift({1.5}), 1.5);
  EXPECT_EQ(median_drift({9.0, 0.5, 1.25}), 1.25);
  EXPECT_EQ(median_drift({1.5, 1.0}), 1.25);
  EXPECT_EQ(median_drift({9.0, 1.0, 0.5, 1.5}), 1.25);
}

}  // namespace
}  // namespace neuroshard
