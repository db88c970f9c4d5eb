// Products of matrices, compiled for several instruction sets and chosen at run time: Eigen itself
// only uses the instruction set that it was compiled for.
#pragma once

#include <Eigen/Core>

namespace neuroshard {

enum class Product { assign, add };
enum class Transpose { no, yes };

/// c = op(a) op(b), or c += op(a) op(b); shapes must fit.
void multiply(const Eigen::MatrixXf& a, Transpose transpose_a, const Eigen::MatrixXf& b,
              Transpose transpose_b, Product product, Eigen::MatrixXf& c);

}  // namespace neuroshard
