// The element-wise work of a dense layer, around its matrix product, compiled once per instruction
// set.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace neuroshard::kernels {

/// Adds the bias to each column and takes the maximum with 0.
void add_and_rectify(Eigen::MatrixXf& columns, const Eigen::MatrixXf& bias);

/// Zero where the ReLU was: its derivative times the gradient of its output. The activations are
/// the first rows of a matrix that may have more.
void keep_active(const Eigen::MatrixXf& activation, Eigen::MatrixXf& gradient);

/// sums.col(i) = sum of the columns of sample i, [first_piece[i], first_piece[i + 1]).
void sum_pieces(const Eigen::MatrixXf& columns, const std::vector<int>& first_piece,
                Eigen::MatrixXf& sums);

}  // namespace neuroshard::kernels
