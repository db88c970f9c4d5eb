// Matrices with given row and column sums.
#pragma once

#include <Eigen/Core>

namespace neuroshard {

/// Iterative proportional fitting (Deming and Stephan 1940): the matrix r[i] * prior(i, j) * c[j]
/// with these row and column sums, which must have the same total. Prior: not negative, a zero
/// stays one; every row and column needs a positive element. The column sums of the result are
/// exact; the row sums converge.
[[nodiscard]] Eigen::MatrixXd proportional_fit(Eigen::MatrixXd prior,
                                               const Eigen::VectorXd& row_sums,
                                               const Eigen::VectorXd& column_sums);

}  // namespace neuroshard
