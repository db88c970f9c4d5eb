// Regression by a Gaussian process: from few noisy samples, with no more change between them than
// they ask for, and back to their common level far from all of them.
#pragma once

#include <Eigen/Core>

namespace neuroshard {

/// The covariance of values at x and y is
///   1 + linear^2 x'y + deviation^2 (1 + r + r^2 / 3) exp(-r),  r = sqrt(5) |x - y| / length
/// (a level, a linear part, and Matern's kernel of 5/2); each sample also has noise of its own.
struct ProcessScales {
  double length = 1.0;
  double deviation = 0.2;
  double linear = 0.1;
  double noise = 0.1;
};

class GaussianProcess {
 public:
  /// Columns of `points` are samples, whose coordinates should be of size 1. The scales are those
  /// of largest likelihood on the first 400 samples, by a search that is the same every time.
  GaussianProcess(Eigen::MatrixXd points, const Eigen::VectorXd& values);

  /// Of the values at other points, columns likewise.
  [[nodiscard]] Eigen::VectorXd expected(const Eigen::MatrixXd& points) const;

  [[nodiscard]] const ProcessScales& scales() const { return scales_; }

 private:
  Eigen::MatrixXd points_;
  ProcessScales scales_;
  Eigen::VectorXd weights_;
};

}  // namespace neuroshard
