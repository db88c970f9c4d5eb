// The process learns smooth functions below the noise of its samples, and knows nothing far away.
#include "neuroshard/train/gaussian_process.h"

#include <gtest/gtest.h>

#include <Eigen/QR>

#include <cmath>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kDimensions = 5;

MatrixXd random_points(int count, Random& random, double spread = 1.5) {
  MatrixXd points(kDimensions, count);
  for (Index i = 0; i < points.size(); ++i) points.data()[i] = random.uniform(-spread, spread);
  return points;
}

/// Bent in two coordinates; three do not count.
double truth(const VectorXd& point) {
  return 0.5 + 0.1 * point[0] + 0.2 * std::cos(1.5 * point[1]);
}

VectorXd truths(const MatrixXd& points) {
  VectorXd values(points.cols());
  for (Index i = 0; i < points.cols(); ++i) values[i] = truth(points.col(i));
  return values;
}

VectorXd noisy(VectorXd values, double deviation, Random& random) {
  for (double& value : values) value += deviation * random.normal();
  return values;
}

double deviation_of(const VectorXd& values) {
  return std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
}

TEST(GaussianProcess, ErrsLessThanItsSamplesAreNoisy) {
  Random random(1);
  const MatrixXd points = random_points(300, random);
  const GaussianProcess process(points, noisy(truths(points), 0.1, random));
  const MatrixXd others = random_points(300, random);
  const double error = deviation_of(process.expected(others) - truths(others));
  EXPECT_LT(error, 0.05);
  EXPECT_NEAR(process.scales().noise, 0.1, 0.03);
  // The linear function that fits best, for comparison, misses what is bent.
  MatrixXd with_one(kDimensions + 1, others.cols());
  with_one << others, MatrixXd::Ones(1, others.cols());
  const VectorXd line = with_one.transpose().colPivHouseholderQr().solve(truths(others));
  EXPECT_LT(error, 0.5 * deviation_of(with_one.transpose() * line - truths(others)));
}

TEST(GaussianProcess, KnowsOnlyWhatAllSamplesHaveInCommonFarFromThem) {
  Random random(2);
  const MatrixXd points = random_points(200, random, 0.3);
  VectorXd values(points.cols());
  for (Index i = 0; i < values.size(); ++i) values[i] = 0.4;
  const GaussianProcess process(points, noisy(values, 0.05, random));
  const VectorXd far = process.expected(random_points(50, random, 4.0));
  EXPECT_LT((far.array() - 0.4).abs().maxCoeff(), 0.1);
}

TEST(GaussianProcess, BelievesNoSampleToBeExact) {
  Random random(3);
  const MatrixXd points = random_points(60, random);
  const GaussianProcess process(points, truths(points));
  EXPECT_GE(process.scales().noise, 0.03);
}

TEST(GaussianProcess, LearnsFromMoreSamplesThanDecideAboutItsScales) {
  Random random(4);
  const MatrixXd points = random_points(900, random);
  const VectorXd values = noisy(truths(points), 0.1, random);
  const GaussianProcess some(points.leftCols(400), values.head(400));
  const GaussianProcess all(points, values);
  EXPECT_EQ(all.scales().length, some.scales().length);
  const MatrixXd others = random_points(300, random);
  const auto error = [&](const GaussianProcess& process) {
    return deviation_of(process.expected(others) - truths(others));
  };
  EXPECT_LT(error(all), error(some));
}

TEST(GaussianProcess, ExpectsTheSameOfAPointAmongManyAsAlone) {
  Random random(5);
  const MatrixXd points = random_points(50, random);
  const GaussianProcess process(points, noisy(truths(points), 0.1, random));
  const MatrixXd others = random_points(600, random);
  const VectorXd all = process.expected(others);
  for (Index i = 0; i < others.cols(); ++i) {
    EXPECT_NEAR(process.expected(others.col(i))[0], all[i], 1e-12) << i;
  }
  EXPECT_EQ(process.expected(MatrixXd(kDimensions, 0)).size(), 0);
}

}  // namespace
}  // namespace neuroshard
