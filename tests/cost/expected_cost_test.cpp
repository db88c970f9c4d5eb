// What plans are expected to cost: the largest of values that scatter, by closed forms and by
// draws.
#include "neuroshard/cost/expected_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/pessimistic_compute_model.h"
#include "neuroshard/cost/compute/remembering_compute_model.h"
#include "tests/cost/arbitrary_network.h"

namespace neuroshard {
namespace {

double normal_distribution(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// Of two, in closed form.
double larger_of_two(double a, double b, double scatter) {
  const double apart = scatter * std::numbers::sqrt2;
  const double mean = std::exp(0.5 * scatter * scatter);
  const double variance = scatter * scatter;
  return mean * (a * normal_distribution((std::log(a / b) + variance) / apart) +
                 b * normal_distribution((std::log(b / a) + variance) / apart));
}

std::shared_ptr<const NeuralComputeModel> model_with(double scatter) {
  ComputeModelInfo info = testing_networks::wide_info();
  info.metrics[kScatterMetric] = scatter;
  return std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 1), std::move(info));
}

TEST(ExpectedLargest, OfTwoIsAsInClosedForm) {
  for (const double scatter : {0.01, 0.04, 0.2, 0.7}) {
    for (const double other : {8.0, 7.9, 7.0, 2.0, 0.01}) {
      const std::vector<double> medians{8.0, other};
      EXPECT_NEAR(expected_largest(medians, scatter) / larger_of_two(8.0, other, scatter), 1.0,
                  5e-4 * scatter)
          << scatter << ", " << other;
    }
  }
}

TEST(ExpectedLargest, OfOneIsItsMean) {
  const std::vector<double> one{3.0};
  EXPECT_NEAR(expected_largest(one, 0.1), 3.0 * std::exp(0.005), 1e-6);
}

TEST(ExpectedLargest, OfManyIsAsOfDraws) {
  const std::vector<double> medians{10.0, 10.0, 9.9, 9.8, 9.5, 9.0, 4.0, 0.0};
  constexpr double kScatter = 0.05;
  constexpr int kDraws = 100'000;
  Random random(5);
  double sum = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    double largest = 0.0;
    for (const double median : medians) {
      largest = std::max(largest, median * std::exp(kScatter * random.normal()));
    }
    sum += largest;
  }
  EXPECT_NEAR(expected_largest(medians, kScatter), sum / kDraws, 0.005);
}

// The largest of n standard normal values, on average (order statistics, e.g. Harter 1961): 8
// values 1.42360, 1,000 values 3.24144.
TEST(ExpectedLargest, GrowsWithTheNumberOfDevices) {
  constexpr double kScatter = 1e-3;  // where the logarithm is a straight line
  EXPECT_NEAR((expected_largest(std::vector<double>(8, 1.0), kScatter) - 1.0) / kScatter, 1.4236,
              2e-3);
  EXPECT_NEAR((expected_largest(std::vector<double>(1000, 1.0), kScatter) - 1.0) / kScatter, 3.2414,
              1e-2);
}

TEST(ExpectedLargest, WithoutScatterOrValues) {
  const std::vector<double> medians{2.0, 5.0};
  EXPECT_EQ(expected_largest(medians, 0.0), 5.0);
  EXPECT_EQ(expected_largest({}, 0.1), 0.0);
  const std::vector<double> nothing{0.0, 0.0};
  EXPECT_EQ(expected_largest(nothing, 0.1), 0.0);
}

RC_GTEST_PROP(ExpectedLargestProperty, IsAboveTheLargestAndRisesWithEachDevice, ()) {
  const double scatter = *rc::gen::map(rc::gen::inRange(1, 1000), [](int n) { return n * 1e-3; });
  const auto medians = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(0, 1'000'000), [](int n) { return n * 1e-3; })));
  const double largest = *std::max_element(medians.begin(), medians.end());
  const double expected = expected_largest(medians, scatter);
  RC_ASSERT(std::isfinite(expected));
  RC_ASSERT(expected >= largest * (1.0 - 1e-9));
  std::vector<double> more = medians;
  more.push_back(*rc::gen::map(rc::gen::inRange(0, 1'000'000), [](int n) { return n * 1e-3; }));
  RC_ASSERT(expected_largest(more, scatter) >= expected * (1.0 - 1e-3 * scatter));
  std::vector<double> reversed(medians.rbegin(), medians.rend());
  RC_ASSERT(expected_largest(reversed, scatter) == expected);
}

TEST(ExpectedCost, AddsWhatTheLongestComputationIsLonger) {
  const auto model = model_with(0.05);
  PlanCost predicted;
  predicted.devices.resize(4);
  std::vector<double> compute_ms{6.0, 6.0, 5.5, 1.0};
  for (std::size_t d = 0; d < 4; ++d) predicted.devices[d].compute_ms = compute_ms[d];
  predicted.cost_ms = 9.0;
  ASSERT_TRUE(expected_cost_ms(*model, predicted));
  EXPECT_DOUBLE_EQ(*expected_cost_ms(*model, predicted),
                   9.0 + expected_largest(compute_ms, 0.05) - 6.0);
  EXPECT_FALSE(expected_cost_ms(*model_with(0.0), predicted));
}

// A single device waits for no other.
TEST(ExpectedCost, OfOneDeviceThatComputesIsNotKnownBetter) {
  PlanCost predicted;
  predicted.devices.resize(3);
  predicted.devices[1].compute_ms = 6.0;
  predicted.cost_ms = 7.0;
  EXPECT_FALSE(expected_cost_ms(*model_with(0.05), predicted));
}

// What no file may have is not said.
TEST(ExpectedCost, BeyondWhatCostsMayBeIsNotKnown) {
  PlanCost predicted;
  predicted.devices.resize(2);
  predicted.devices[0].compute_ms = predicted.devices[1].compute_ms = 1e30;
  predicted.cost_ms = 1e30;
  EXPECT_FALSE(expected_cost_ms(*model_with(0.05), predicted));
}

TEST(Scatter, OfAModelIsAmongItsMetrics) {
  EXPECT_EQ(testing_networks::random_model(ComputeArchitecture::bounded_loads, 1)->scatter(), 0.0);
  EXPECT_EQ(model_with(0.04)->scatter(), 0.04);
  for (const double no_scatter : {0.0, -0.1, 1.0, 1e300}) {
    EXPECT_EQ(model_with(no_scatter)->scatter(), 0.0) << no_scatter;
  }
  EXPECT_EQ(RememberingComputeModel(model_with(0.04)).scatter(), 0.04);
  EXPECT_EQ(PessimisticComputeModel(model_with(0.04), 0.5).scatter(), 0.04);
}

}  // namespace
}  // namespace neuroshard
