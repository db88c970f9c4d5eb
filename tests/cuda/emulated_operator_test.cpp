// The kernels' code, run on the host, against the double-precision reference: random tables, and
// those that are hard to divide among a GPU's threads.
#include "tests/cuda/emulated_operator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "tests/collect/operator_fixture.h"
#include "tests/cuda/adversarial_fixture.h"

namespace neuroshard::cuda {
namespace {

using testing_operator::adversarial_fixture;
using testing_operator::Fixture;
using testing_operator::random_fixture;
using testing_operator::random_gradient;
using testing_operator::reference_backward;
using testing_operator::reference_forward;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void expect_emulated_forward(Fixture& fixture, std::int64_t resident_threads,
                             double tolerance = 1e-5) {
  const std::vector<OperatorTable> tables = fixture.tables();
  const EmulatedOperator embedding(tables, fixture.batches, fixture.batch_size, resident_threads);
  std::vector<float> output(fixture.batch_size * fixture.total_columns(), kNaN);
  embedding.forward(output);
  const std::vector<double> expected = reference_forward(fixture);
  for (std::size_t i = 0; i < output.size(); ++i) {
    ASSERT_NEAR(output[i], expected[i], tolerance + 2e-5 * std::abs(expected[i])) << i;
  }
}

void expect_emulated_backward(Fixture& fixture, Optimizer optimizer, std::int64_t resident_threads,
                              Random& random, double fp32_tolerance = 2e-5) {
  const OperatorOptions options{optimizer, 0.1F, 1e-8F};
  const std::vector<float> gradient = random_gradient(fixture, random);
  const auto expected = reference_backward(fixture, gradient, options);
  const std::vector<OperatorTable> tables = fixture.tables();
  EmulatedOperator(tables, fixture.batches, fixture.batch_size, resident_threads)
      .backward(gradient, {optimizer, options.learning_rate, options.epsilon});
  for (std::size_t t = 0; t < expected.size(); ++t) {
    // fp16 carries 11 bits.
    const bool half = fixture.types[t] == DataType::fp16;
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      const double tolerance = half ? 2e-3 + 5e-4 * std::abs(expected[t][i])
                                    : fp32_tolerance + 2e-5 * std::abs(expected[t][i]);
      ASSERT_NEAR(fixture.weight(t, i), expected[t][i], tolerance) << "table " << t << ": " << i;
    }
  }
}

/// From one task for all to as many as there can be.
std::int64_t some_threads(Random& random) { return std::int64_t{1} << random.integer(0, 16); }

RC_GTEST_PROP(EmulatedOperator, ForwardIsTheSumOfRows, (std::uint64_t seed)) {
  Random random(seed);
  Fixture fixture = random_fixture(random);
  expect_emulated_forward(fixture, some_threads(random));
  RC_ASSERT(!testing::Test::HasFatalFailure());
}

RC_GTEST_PROP(EmulatedOperator, BackwardUpdatesEachDistinctRowOnce,
              (std::uint64_t seed, bool adagrad)) {
  Random random(seed);
  Fixture fixture = random_fixture(random);
  expect_emulated_backward(fixture, adagrad ? Optimizer::rowwise_adagrad : Optimizer::sgd,
                           some_threads(random), random);
  RC_ASSERT(!testing::Test::HasFatalFailure());
}

class AdversarialBatches : public testing::TestWithParam<std::tuple<DataType, int>> {};

TEST_P(AdversarialBatches, MatchTheReference) {
  const auto [type, columns] = GetParam();
  for (const std::int64_t threads : {1, 1 << 10, 1 << 20}) {
    SCOPED_TRACE(threads);
    Random random(5);
    Fixture fixture = adversarial_fixture(type, columns, random);
    expect_emulated_forward(fixture, threads, 2e-3);
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
      expect_emulated_backward(fixture, optimizer, threads, random, 2e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, AdversarialBatches,
                         testing::Combine(testing::Values(DataType::fp32, DataType::fp16),
                                          testing::Values(4, 5, 8, 12, 40, 128, 260, 1024)));

TEST(EmulatedOperator, CutsLongBagsAndReducesHotRowsInLevels) {
  Random random(5);
  Fixture fixture = adversarial_fixture(DataType::fp32, 8, random);
  const std::vector<OperatorTable> tables = fixture.tables();
  const EmulatedOperator embedding(tables, fixture.batches, fixture.batch_size, 1 << 20);
  const LaunchPlan& plan = embedding.plan();
  EXPECT_FALSE(plan.pooling[0].splits_bags) << "all bags empty";
  EXPECT_TRUE(plan.pooling[3].splits_bags) << "one bag of 2,500";
  EXPECT_GT(plan.pooling[3].num_ranges, 100);
  EXPECT_GE(plan.levels.size(), 3U);
}

}  // namespace
}  // namespace neuroshard::cuda
