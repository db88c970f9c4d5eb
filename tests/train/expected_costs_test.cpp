// Costs of sets that nobody measured follow those of measured ones, and the model far from them.
#include "neuroshard/train/compute/expected_costs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "neuroshard/train/compute/dataset_batch.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/io/io_test_util.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

ComputeDataset sets(int count, std::uint64_t seed) {
  const TemporaryFolder folder;
  testing_costs::write_costs(folder.file("costs.jsonl"), testing_costs::make_header(), count, seed);
  return load_compute_dataset({folder.file("costs.jsonl")}, FeatureSchema::work);
}

std::vector<int> all_of(const ComputeDataset& dataset) {
  std::vector<int> samples(dataset.size());
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

class ExpectedCosts : public testing::Test {
 protected:
  /// A machine whose costs are the model's times a function of a set's pieces.
  void measure(const std::function<double(int pieces)>& factor) {
    const std::vector<double> costs_ms = costs_by(model_, measured_, pool_);
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      measured_.cost_ms[i] =
          costs_ms[i] * factor(measured_.first_piece[i + 1] - measured_.first_piece[i]);
    }
  }

  /// Largest |ln(expected / model's cost times the factor)|.
  double largest_error(const std::function<double(int pieces)>& factor) {
    const std::vector<double> expected =
        expected_costs(model_, measured_, all_of(measured_), others_, pool_);
    const std::vector<double> costs_ms = costs_by(model_, others_, pool_);
    double largest = 0.0;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const double true_ms =
          costs_ms[i] * factor(others_.first_piece[i + 1] - others_.first_piece[i]);
      largest = std::max(largest, std::abs(std::log(expected[i] / true_ms)));
    }
    return largest;
  }

  ThreadPool pool_{2};
  NeuralComputeModel model_{testing_networks::random_network(ComputeArchitecture::bounded_loads, 4),
                            testing_networks::wide_info("elsewhere")};
  ComputeDataset measured_ = sets(150, 1);
  ComputeDataset others_ = sets(600, 2);
};

TEST_F(ExpectedCosts, AreTheModelsTimesTheChangeOfSpeed) {
  const auto slower = [](int) { return 1.7; };
  measure(slower);
  EXPECT_LT(largest_error(slower), 0.01);
}

TEST_F(ExpectedCosts, FollowWhatTheMeasuredSetsSay) {
  const auto crowded = [](int pieces) { return 0.8 + 0.2 * pieces; };
  measure(crowded);
  EXPECT_LT(largest_error(crowded), 0.15);
}

TEST_F(ExpectedCosts, GoByTheKnownSamplesAlone) {
  measure([](int) { return 1.7; });
  std::vector<int> known;
  for (int sample = 0; sample < 150; sample += 2) known.push_back(sample);
  const std::vector<double> before = expected_costs(model_, measured_, known, others_, pool_);
  for (int sample = 1; sample < 150; sample += 2) measured_.cost_ms[sample] *= 100.0;
  EXPECT_EQ(expected_costs(model_, measured_, known, others_, pool_), before);
}

TEST_F(ExpectedCosts, DoNotDependOnTheNumberOfThreads) {
  measure([](int pieces) { return 0.8 + 0.2 * pieces; });
  ThreadPool one(1);
  EXPECT_EQ(expected_costs(model_, measured_, all_of(measured_), others_, pool_),
            expected_costs(model_, measured_, all_of(measured_), others_, one));
}

}  // namespace
}  // namespace neuroshard
