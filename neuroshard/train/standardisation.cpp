// Means and deviations of features.
#include "neuroshard/train/standardisation.h"

namespace neuroshard {

Standardisation standardise(const Eigen::MatrixXf& features, const std::vector<int>& first_column,
                            const std::vector<int>& samples) {
  const Eigen::Index count = features.rows();
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(count);
  Eigen::VectorXd squares = Eigen::VectorXd::Zero(count);
  double columns = 0.0;
  for (const int sample : samples) {
    for (int column = first_column[sample]; column < first_column[sample + 1]; ++column) {
      const Eigen::VectorXd values = features.col(column).cast<double>();
      sum += values;
      squares += values.cwiseAbs2();
      columns += 1.0;
    }
  }
  const Eigen::VectorXd mean = sum / columns;
  const Eigen::VectorXd deviation =
      (squares / columns - mean.cwiseAbs2()).cwiseMax(0.0).cwiseSqrt();
  return {mean.cast<float>(),
          (deviation.array() > 1e-6).select(deviation.cwiseInverse(), 0.0).cast<float>()};
}

}  // namespace neuroshard
