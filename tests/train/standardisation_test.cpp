// Means and scales of features: over the samples' columns alone, and which features are constant.
#include "neuroshard/train/standardisation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace neuroshard {
namespace {

TEST(Standardisation, IsOfTheSamplesColumnsAlone) {
  Eigen::MatrixXf features(2, 5);
  features.row(0) << 1.0F, 3.0F, 100.0F, 5.0F, 7.0F;
  features.row(1) << -2.0F, 2.0F, 100.0F, -2.0F, 2.0F;
  const Standardisation standard = standardise(features, {0, 2, 3, 5}, {0, 2});
  EXPECT_EQ(standard.mean[0], 4.0F);
  EXPECT_FLOAT_EQ(standard.scale[0], 1.0F / std::sqrt(5.0F));
  EXPECT_EQ(standard.mean[1], 0.0F);
  EXPECT_EQ(standard.scale[1], 0.5F);
}

/// Of so many, rounding alone makes a variance of 1e-10.
TEST(Standardisation, AConstantIsOneInHoweverManyColumns) {
  constexpr int kColumns = 30'000;
  const auto value = static_cast<float>(std::log2(3000.0));
  const Eigen::MatrixXf features = Eigen::MatrixXf::Constant(1, kColumns, value);
  const Standardisation standard = standardise(features, {0, kColumns}, {0});
  EXPECT_EQ(standard.mean[0], value);
  EXPECT_EQ(standard.scale[0], 0.0F);
}

}  // namespace
}  // namespace neuroshard
