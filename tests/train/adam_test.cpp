// Adam: it finds the bottom of a quadratic, and its steps are those of the published algorithm.
#include "neuroshard/train/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {
namespace {

using Eigen::MatrixXf;

TEST(Adam, FindsTheBottomOfAQuadratic) {
  // Curvatures from 0.01 to 100, for which gradient descent with one rate does badly.
  std::vector<MatrixXf> parameters{MatrixXf::Constant(5, 1, 3.0F), MatrixXf::Constant(1, 2, -3.0F)};
  const MatrixXf curvature = (MatrixXf(5, 1) << 0.01F, 0.1F, 1.0F, 10.0F, 100.0F).finished();
  Adam adam(parameters);
  for (int step = 0; step < 2000; ++step) {
    const std::vector<MatrixXf> gradients{
        curvature.cwiseProduct(parameters[0] - MatrixXf::Ones(5, 1)), parameters[1]};
    adam.step(parameters, gradients, 0.05 * (1.0 - step / 2000.0));
  }
  EXPECT_LT((parameters[0] - MatrixXf::Ones(5, 1)).cwiseAbs().maxCoeff(), 1e-2F);
  EXPECT_LT(parameters[1].cwiseAbs().maxCoeff(), 1e-2F);
}

TEST(Adam, TheFirstStepIsTheRateWhateverTheGradient) {
  std::vector<MatrixXf> parameters{MatrixXf::Zero(3, 1)};
  Adam adam(parameters);
  adam.step(parameters, {(MatrixXf(3, 1) << 100.0F, -0.01F, 0.0F).finished()}, 0.25);
  EXPECT_NEAR(parameters[0](0), -0.25F, 1e-4F);
  EXPECT_NEAR(parameters[0](1), 0.25F, 1e-4F);
  EXPECT_EQ(parameters[0](2), 0.0F);
}

TEST(Adam, StepsOfAParameterAreAsLargeAsTold) {
  std::vector<MatrixXf> parameters{MatrixXf::Zero(1, 1), MatrixXf::Zero(1, 1)};
  Adam adam(parameters);
  adam.step(parameters, {MatrixXf::Constant(1, 1, 3.0F), MatrixXf::Constant(1, 1, 3.0F)}, 0.25,
            {1.0F, 0.1F});
  EXPECT_NEAR(parameters[0](0), -0.25F, 1e-4F);
  EXPECT_NEAR(parameters[1](0), -0.025F, 1e-5F);
}

TEST(Adam, FollowsThePublishedAlgorithm) {
  Random random(4);
  std::vector<MatrixXf> parameters{MatrixXf::Zero(1, 1)};
  Adam adam(parameters);
  double x = 0.0;
  double mean = 0.0;
  double variance = 0.0;
  for (int t = 1; t <= 200; ++t) {
    const double gradient = random.normal() + 0.5;
    adam.step(parameters, {MatrixXf::Constant(1, 1, static_cast<float>(gradient))}, 0.01);
    mean = 0.9 * mean + 0.1 * gradient;
    variance = 0.999 * variance + 0.001 * gradient * gradient;
    x -= 0.01 * (mean / (1.0 - std::pow(0.9, t))) /
         (std::sqrt(variance / (1.0 - std::pow(0.999, t))) + 1e-8);
    ASSERT_NEAR(parameters[0](0), x, 1e-4) << "step " << t;
  }
}

}  // namespace
}  // namespace neuroshard
