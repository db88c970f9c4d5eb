// Least squares with unknowns that cannot be negative.
#pragma once

#include <Eigen/Core>

namespace neuroshard {

/// The x >= 0 that minimises |a x - b|, by the active set method of Lawson and Hanson (1974,
/// "Solving Least Squares Problems", chapter 23). a: rows x columns, b: rows, result: columns.
[[nodiscard]] Eigen::VectorXd nonnegative_least_squares(const Eigen::MatrixXd& a,
                                                        const Eigen::VectorXd& b);

}  // namespace neuroshard
