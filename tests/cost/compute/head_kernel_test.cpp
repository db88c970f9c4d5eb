// The search's kernels against their formulas, on every instruction set that this machine has.
#include "neuroshard/cost/compute/head_kernel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "tests/cost/instruction_sets.h"

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

std::vector<double> uniform_doubles(std::size_t count, Random& random) {
  std::vector<double> values(count);
  for (double& value : values) value = random.uniform(-2.0, 2.0);
  return values;
}

Problem random_problem(std::size_t hidden, std::size_t num_states, Random& random) {
  Problem problem{hidden,
                  uniform_doubles(num_states * (hidden + 2), random),
                  uniform_doubles(hidden + 2, random),
                  uniform_doubles(hidden, random),
                  uniform_doubles(hidden, random),
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

void expect_matching_heads(const Problem& problem, bool with_piece) {
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
  testing_kernels::on_every_instruction_set([] {
    Random random(11);
    for (std::size_t hidden = 0; hidden <= 40; ++hidden) {
      const Problem problem = random_problem(hidden, 5, random);
      expect_matching_heads(problem, false);
      expect_matching_heads(problem, true);
    }
    expect_matching_heads(random_problem(257, 3, random), true);
  });
}

TEST(HeadKernel, AddsAndSubtractsEveryElement) {
  Random random(3);
  for (std::size_t size = 0; size <= 70; ++size) {
    const std::vector<double> first = uniform_doubles(size, random);
    const std::vector<double> second = uniform_doubles(size, random);
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

/// A device's state, or what a piece adds to it: multiples of the grid, as models give them.
std::vector<double> values_on_grid(std::size_t size, double pieces, Random& random) {
  std::vector<double> values(size);
  for (double& value : values) {
    value = std::nearbyint(random.uniform(-50.0, 50.0) / kStateGrid) * kStateGrid;
  }
  values[0] = pieces;
  return values;
}

/// Pieces added one after the other, in one go and in two steps.
void expect_one_go_is_two_steps(std::size_t hidden, std::size_t behind, Random& random) {
  const std::size_t size = 2 + hidden + behind;
  const std::vector<double> bias = uniform_doubles(hidden, random);
  const std::vector<double> output = uniform_doubles(hidden, random);
  const double offset = random.uniform();
  std::vector<double> expected(size, 0.0);
  std::vector<double> at(8 + size, 0.0);  // rows begin anywhere in a cache line
  const std::span<double> state = std::span(at).subspan(random.below(8), size);
  for (const double pieces : {0.0, 1.0, 1.0, -2.0}) {
    const std::vector<double> piece = values_on_grid(size, pieces, random);
    kernels::add(expected.data(), piece.data(), size);
    double cost = std::nan("");
    kernels::head_costs(expected.data(), 1, size, nullptr, hidden, bias.data(), output.data(),
                        offset, &cost);
    const double actual = kernels::add_and_cost(state.data(), piece.data(), size, hidden,
                                                bias.data(), output.data(), offset);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(actual), std::bit_cast<std::uint64_t>(cost))
        << hidden << " hidden, " << behind << " behind, " << expected[0] << " pieces";
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(state[i]), std::bit_cast<std::uint64_t>(expected[i]))
          << "element " << i << " of " << size << ", " << hidden << " hidden";
    }
  }
}

TEST(HeadKernel, AddingAndPricingInOneGoIsTheSameBitForBit) {
  testing_kernels::on_every_instruction_set([] {
    Random random(13);
    for (std::size_t hidden = 0; hidden <= 70; ++hidden) {
      expect_one_go_is_two_steps(hidden, random.below(6), random);
    }
    for (int repeat = 0; repeat < 30; ++repeat) {
      expect_one_go_is_two_steps(71 + random.below(300), random.below(18), random);
    }
  });
}

/// Between multiples, halfway, next to 0 and so large that there are multiples only.
double value_to_round(double grid, Random& random) {
  const auto halves = [&](std::int64_t most) {
    return static_cast<double>(2 * random.integer(-most, most) + 1) * 0.5 * grid;
  };
  switch (random.below(7)) {
    case 0:
      return random.uniform(-8.0, 8.0);
    case 1:
      return random.uniform(-5e8, 5e8);
    case 2:
      return random.uniform(-1.0, 1.0) * grid;
    case 3:
      return halves(4);
    case 4:
      return halves(std::int64_t{1} << 51);
    case 5:
      return random.below(2) == 0 ? 5e8 : -5e8;
    default:
      return random.below(2) == 0 ? 0.0 : -0.0;
  }
}

TEST(HeadKernel, RoundsToTheNearestMultipleBitForBit) {
  testing_kernels::on_every_instruction_set([] {
    Random random(14);
    for (const double grid : {kStateGrid, 0x1p-10, 1.0, 8.0}) {
      for (std::size_t size = 0; size <= 70; ++size) {
        std::vector<double> values(size);
        for (double& value : values) value = value_to_round(grid, random);
        std::vector<double> rounded = values;
        kernels::round_to_multiples(rounded.data(), size, grid);
        for (std::size_t i = 0; i < size; ++i) {
          const double expected = std::nearbyint(values[i] / grid) * grid;
          EXPECT_EQ(std::bit_cast<std::uint64_t>(rounded[i]),
                    std::bit_cast<std::uint64_t>(expected))
              << values[i] << ", " << size << " values, grid " << grid;
        }
        round_to_grid(values, grid);
        EXPECT_EQ(values, rounded);
      }
    }
  });
}

}  // namespace
}  // namespace neuroshard
