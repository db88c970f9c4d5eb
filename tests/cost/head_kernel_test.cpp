// The head kernel against its formula, on every instruction set that this machine has.
#include "neuroshard/cost/head_kernel.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "neuroshard/core/random.h"

namespace neuroshard {
namespace {

struct Problem {
  std::size_t hidden = 0;
  std::vector<double> states;
  std::vector<double> piece;
  std::vector<double> bias;
  std::vector<double> output;
  double offset = 0.0;

  [[nodiscard]] std::size_t num_states() const { return states.size() / (hidden + 2); }
};

std::vector<double> uniform_values(std::size_t count, Random& random) {
  std::vector<double> values(count);
  for (double& value : values) value = random.uniform(-2.0, 2.0);
  return values;
}

Problem random_problem(std::size_t hidden, std::size_t num_states, Random& random) {
  Problem problem{hidden,
                  uniform_values(num_states * (hidden + 2), random),
                  uniform_values(hidden + 2, random),
                  uniform_values(hidden, random),
                  uniform_values(hidden, random),
                  random.uniform()};
  problem.piece[0] = 1.0;
  for (std::size_t i = 0; i < num_states; ++i) {
    problem.states[i * (hidden + 2)] = static_cast<double>(random.below(3));  // some are empty
  }
  return problem;
}

/// Value by value, as the header says. `scale` is the sum of the magnitudes of what is added.
double naive_cost(const Problem& problem, std::size_t at, bool with_piece, double& scale) {
  const auto element = [&](std::size_t i) {
    return problem.states[at * (problem.hidden + 2) + i] + (with_piece ? problem.piece[i] : 0.0);
  };
  if (element(0) == 0.0) return 0.0;
  double cost = problem.offset + element(1);
  scale = std::abs(cost) + 1.0;
  for (std::size_t j = 0; j < problem.hidden; ++j) {
    const double term = problem.output[j] * std::max(element(2 + j) + problem.bias[j], 0.0);
    cost += term;
    scale += std::abs(term);
  }
  return cost;
}

void expect_matches(const Problem& problem, bool with_piece) {
  std::vector<double> costs(problem.num_states(), std::nan(""));
  kernels::head_costs(problem.states.data(), problem.num_states(), problem.hidden + 2,
                      with_piece ? problem.piece.data() : nullptr, problem.hidden,
                      problem.bias.data(), problem.output.data(), problem.offset, costs.data());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    double scale = 0.0;
    const double expected = naive_cost(problem, i, with_piece, scale);
    EXPECT_NEAR(costs[i], expected, 1e-13 * scale) << problem.hidden << " hidden, state " << i;
  }
}

TEST(HeadKernel, MatchesTheFormulaOnEveryInstructionSet) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    Random random(11);
    for (std::size_t hidden = 0; hidden <= 40; ++hidden) {
      const Problem problem = random_problem(hidden, 5, random);
      expect_matches(problem, false);
      expect_matches(problem, true);
    }
    expect_matches(random_problem(257, 3, random), true);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

TEST(HeadKernel, AddsAndSubtractsEveryElement) {
  Random random(3);
  for (std::size_t size = 0; size <= 70; ++size) {
    const std::vector<double> first = uniform_values(size, random);
    const std::vector<double> second = uniform_values(size, random);
    std::vector<double> sum = first;
    kernels::add(sum.data(), second.data(), size);
    std::vector<double> difference = first;
    kernels::subtract(difference.data(), second.data(), size);
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(sum[i], first[i] + second[i]);
      EXPECT_EQ(difference[i], first[i] - second[i]);
    }
  }
}

TEST(HeadKernel, ACostDoesNotDependOnTheOtherStates) {
  Random random(12);
  const Problem all = random_problem(33, 7, random);
  std::vector<double> costs(7);
  kernels::head_costs(all.states.data(), 7, 35, all.piece.data(), 33, all.bias.data(),
                      all.output.data(), all.offset, costs.data());
  for (std::size_t i = 0; i < 7; ++i) {
    double alone = 0.0;
    kernels::head_costs(all.states.data() + i * 35, 1, 35, all.piece.data(), 33, all.bias.data(),
                        all.output.data(), all.offset, &alone);
    EXPECT_EQ(alone, costs[i]);
  }
  kernels::head_costs(nullptr, 0, 35, nullptr, 33, all.bias.data(), all.output.data(), all.offset,
                      nullptr);
}

}  // namespace
}  // namespace neuroshard
