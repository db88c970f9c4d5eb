// Alternating scaling of rows and columns.
#include "neuroshard/workload/generate/proportional_fitting.h"

namespace neuroshard {

Eigen::MatrixXd proportional_fit(Eigen::MatrixXd prior, const Eigen::VectorXd& row_sums,
                                 const Eigen::VectorXd& column_sums) {
  constexpr int kMaxRounds = 200;
  constexpr double kTolerance = 1e-6;  // relative, of the row sums
  for (int round = 0; round < kMaxRounds; ++round) {
    const Eigen::VectorXd row_scale = row_sums.cwiseQuotient(prior.rowwise().sum());
    prior = row_scale.asDiagonal() * prior;
    const Eigen::VectorXd column_scale =
        column_sums.cwiseQuotient(prior.colwise().sum().transpose());
    prior = prior * column_scale.asDiagonal();
    if ((row_scale.array() - 1.0).abs().maxCoeff() < kTolerance) break;
  }
  return prior;
}

}  // namespace neuroshard
