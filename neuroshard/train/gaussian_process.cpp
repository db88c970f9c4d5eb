// Kernel, likelihood, and the search for the scales.
#include "neuroshard/train/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// As many samples decide about the scales: the time grows with the third power.
constexpr Index kSamplesOfLikelihood = 400;
/// Less noise than this is not believed, whatever the likelihood says.
constexpr double kLeastNoise = 0.03;
/// The search begins with each of these, as the likelihood may have one maximum of much noise and
/// one of little.
constexpr std::array<double, 2> kFirstNoise{0.06, 0.18};
/// Scales are multiplied and divided by these, one scale after the other, `kRounds` times each.
constexpr std::array<double, 3> kSteps{2.718281828459045, 1.6487212707001282, 1.2840254166877414};
constexpr int kRounds = 3;
/// Points whose covariances with all samples are computed at once.
constexpr Index kBlock = 256;

MatrixXd covariance(const ProcessScales& scales, const MatrixXd& left, const MatrixXd& right) {
  const MatrixXd products = left.transpose() * right;
  MatrixXd squares = -2.0 * products;
  squares.colwise() += left.colwise().squaredNorm().transpose();
  squares.rowwise() += right.colwise().squaredNorm();
  const Eigen::ArrayXXd r = (5.0 * squares.array().max(0.0)).sqrt() / scales.length;
  return (1.0 + scales.linear * scales.linear * products.array() +
          scales.deviation * scales.deviation * (1.0 + r + r.square() / 3.0) * (-r).exp())
      .matrix();
}

Eigen::LLT<MatrixXd> decomposed(const ProcessScales& scales, const MatrixXd& points) {
  MatrixXd all = covariance(scales, points, points);
  all.diagonal().array() += scales.noise * scales.noise;
  return all.llt();
}

/// The negative logarithm of the likelihood, but for a constant.
double misfit(const ProcessScales& scales, const MatrixXd& points, const VectorXd& values) {
  const Eigen::LLT<MatrixXd> root = decomposed(scales, points);
  if (root.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  const double value =
      0.5 * values.dot(root.solve(values)) + root.matrixLLT().diagonal().array().log().sum();
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

std::pair<double, ProcessScales> fitted_from(ProcessScales scales, const MatrixXd& points,
                                             const VectorXd& values) {
  double least = misfit(scales, points, values);
  for (const double step : kSteps) {
    for (int round = 0; round < kRounds; ++round) {
      for (double ProcessScales::*scale : {&ProcessScales::length, &ProcessScales::deviation,
                                           &ProcessScales::linear, &ProcessScales::noise}) {
        for (const double factor : {1.0 / step, step}) {
          ProcessScales changed = scales;
          changed.*scale *= factor;
          changed.noise = std::max(changed.noise, kLeastNoise);
          const double found = misfit(changed, points, values);
          if (found < least) {
            least = found;
            scales = changed;
          }
        }
      }
    }
  }
  return {least, scales};
}

ProcessScales fitted(const MatrixXd& points, const VectorXd& values) {
  const double dimensions = std::sqrt(static_cast<double>(std::max<Index>(points.rows(), 1)));
  std::pair<double, ProcessScales> best{std::numeric_limits<double>::infinity(), {}};
  for (const double noise : kFirstNoise) {
    const std::pair<double, ProcessScales> found = fitted_from(
        {.length = dimensions, .deviation = 0.2, .linear = 0.1 / dimensions, .noise = noise},
        points, values);
    if (found.first < best.first || noise == kFirstNoise.front()) best = found;
  }
  return best.second;
}

}  // namespace

GaussianProcess::GaussianProcess(MatrixXd points, const VectorXd& values)
    : points_(std::move(points)) {
  const Index some = std::min(points_.cols(), kSamplesOfLikelihood);
  scales_ = fitted(points_.leftCols(some), values.head(some));
  weights_ = decomposed(scales_, points_).solve(values);
}

VectorXd GaussianProcess::expected(const MatrixXd& points) const {
  VectorXd values(points.cols());
  for (Index first = 0; first < points.cols(); first += kBlock) {
    const Index count = std::min(kBlock, points.cols() - first);
    values.segment(first, count) =
        covariance(scales_, points_, points.middleCols(first, count)).transpose() * weights_;
  }
  return values;
}

}  // namespace neuroshard
