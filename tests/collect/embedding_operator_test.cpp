// The fused operator against a naive double-precision reference, finite differences, and itself on
// other numbers of threads.
#include "neuroshard/collect/compute/cpu/embedding_operator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "neuroshard/core/numbers/random.h"
#include "tests/collect/operator_fixture.h"

namespace neuroshard {
namespace {

using namespace testing_operator;

RC_GTEST_PROP(EmbeddingOperator, ForwardIsTheSumOfRows, (std::uint64_t seed)) {
  Random random(seed);
  Fixture fixture = random_fixture(random);
  ThreadPool pool(2);
  EmbeddingOperator embedding(fixture.tables(), {}, pool);
  std::vector<float> output(fixture.batch_size * fixture.total_columns(), NAN);  // poisoned
  embedding.forward(fixture.batches, fixture.batch_size, output);
  const std::vector<double> expected = reference_forward(fixture);
  for (std::size_t i = 0; i < output.size(); ++i) {
    RC_ASSERT(std::abs(output[i] - expected[i]) <= 1e-5);
  }
}

RC_GTEST_PROP(EmbeddingOperator, BackwardUpdatesEachDistinctRowOnce,
              (std::uint64_t seed, bool adagrad)) {
  Random random(seed);
  Fixture fixture = random_fixture(random);
  ThreadPool pool(2);
  const OperatorOptions options{adagrad ? Optimizer::rowwise_adagrad : Optimizer::sgd, 0.1F, 1e-8F};
  const std::vector<float> gradient = random_gradient(fixture, random);
  const auto expected = reference_backward(fixture, gradient, options);
  EmbeddingOperator embedding(fixture.tables(), options, pool);
  embedding.backward(fixture.batches, fixture.batch_size, gradient);
  for (std::size_t t = 0; t < expected.size(); ++t) {
    // fp16 weights carry 11 bits: half a unit in the last place of values below 8.
    const double tolerance = fixture.types[t] == DataType::fp32 ? 2e-5 : 4e-3;
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      RC_ASSERT(std::abs(fixture.weight(t, i) - expected[t][i]) <= tolerance);
    }
  }
}

/// Large enough that tables are partitioned over several parts and chunks.
Fixture large_fixture() {
  Random random(7);
  Fixture fixture;
  fixture.batch_size = 3000;
  for (const std::int64_t num_rows : {5, 1000, 70'000, 300'001}) {
    fixture.add_table(num_rows, 8, DataType::fp32, random);
    fixture.add_batch(120, random);
  }
  return fixture;
}

TEST(EmbeddingOperator, ResultsDoNotDependOnTheNumberOfThreads) {
  std::vector<std::vector<std::vector<float>>> results;
  for (const int threads : {1, 2, 5}) {
    Fixture fixture = large_fixture();
    Random random(3);
    const std::vector<float> gradient = random_gradient(fixture, random);
    ThreadPool pool(threads);
    EmbeddingOperator embedding(fixture.tables(), {Optimizer::rowwise_adagrad, 0.1F, 1e-8F}, pool);
    std::vector<float> output(gradient.size());
    embedding.forward(fixture.batches, fixture.batch_size, output);
    embedding.backward(fixture.batches, fixture.batch_size, gradient);
    results.push_back(fixture.weights);
    results.back().push_back(output);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(EmbeddingOperator, PartitionedBackwardMatchesTheReference) {
  Fixture fixture = large_fixture();
  Random random(3);
  const std::vector<float> gradient = random_gradient(fixture, random);
  const OperatorOptions options{Optimizer::sgd, 0.001F, 0.0F};
  const auto expected = reference_backward(fixture, gradient, options);
  ThreadPool pool(2);
  EmbeddingOperator(fixture.tables(), options, pool)
      .backward(fixture.batches, fixture.batch_size, gradient);
  for (std::size_t t = 0; t < expected.size(); ++t) {
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      // A hot row sums tens of thousands of fp32 gradients.
      ASSERT_NEAR(fixture.weights[t][i], expected[t][i], 2e-4) << "table " << t << " element " << i;
    }
  }
}

/// L(w) = sum over output elements of gradient * output is linear in w, so the finite difference is
/// exact but for rounding, and one SGD step with rate 1 moves each weight by it.
TEST(EmbeddingOperator, GradientAgreesWithFiniteDifferences) {
  Random random(11);
  Fixture fixture;
  fixture.batch_size = 9;
  fixture.add_table(6, 12, DataType::fp32, random);
  fixture.add_batch(5, random);
  const std::vector<float> gradient = random_gradient(fixture, random);
  const auto loss = [&] {
    const std::vector<double> output = reference_forward(fixture);
    double sum = 0.0;
    for (std::size_t i = 0; i < output.size(); ++i) sum += output[i] * gradient[i];
    return sum;
  };
  std::vector<double> differences;
  for (float& weight : fixture.weights[0]) {
    const float kept = weight;
    weight = kept + 0.5F;
    const double above = loss();
    weight = kept - 0.5F;
    differences.push_back((above - loss()));
    weight = kept;
  }
  const std::vector<float> before = fixture.weights[0];
  ThreadPool pool(1);
  EmbeddingOperator(fixture.tables(), {Optimizer::sgd, 1.0F, 0.0F}, pool)
      .backward(fixture.batches, fixture.batch_size, gradient);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i] - fixture.weights[0][i], differences[i], 1e-5);
  }
}

}  // namespace
}  // namespace neuroshard
