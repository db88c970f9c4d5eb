// Means and deviations of features.
#include "neuroshard/train/standardisation.h"

#include <limits>

namespace neuroshard {

Standardisation standardise(const Eigen::MatrixXf& features, const std::vector<int>& first_column,
                            const std::vector<int>& samples) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Eigen::Index count = features.rows();
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(count);
  Eigen::VectorXd squares = Eigen::VectorXd::Zero(count);
  Eigen::VectorXf least = Eigen::VectorXf::Constant(count, kInfinity);
  Eigen::VectorXf largest = Eigen::VectorXf::Constant(count, -kInfinity);
  double columns = 0.0;
  for (const int sample : samples) {
    for (int column = first_column[sample]; column < first_column[sample + 1]; ++column) {
      const Eigen::VectorXd values = features.col(column).cast<double>();
      sum += values;
      squares += values.cwiseAbs2();
      least = least.cwiseMin(features.col(column));
      largest = largest.cwiseMax(features.col(column));
      columns += 1.0;
    }
  }
  const Eigen::VectorXd mean = sum / columns;
  const Eigen::VectorXd deviation =
      (squares / columns - mean.cwiseAbs2()).cwiseMax(0.0).cwiseSqrt();
  const Eigen::VectorXf scale =
      (deviation.array() > 1e-6).select(deviation.cwiseInverse(), 0.0).cast<float>();
  // Rounding alone gives a constant a deviation, and the more columns there are the larger.
  const auto is_constant = least.array() == largest.array();
  return {is_constant.select(least, mean.cast<float>()), is_constant.select(0.0F, scale)};
}

}  // namespace neuroshard
