// Trained parameters in double precision, and gradients of a loss of them by differences, for
// tests.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "neuroshard/train/dense_layers.h"

namespace neuroshard::testing_train {

using DoubleParameters = std::vector<Eigen::MatrixXd>;

inline DoubleParameters in_double(const Parameters& parameters) {
  DoubleParameters result;
  for (const Eigen::MatrixXf& parameter : parameters) result.push_back(parameter.cast<double>());
  return result;
}

/// Central differences of `loss(p)` by the parameters p[at].
template <typename LossFunction>
Eigen::MatrixXd numeric_gradient(DoubleParameters p, std::size_t at, const LossFunction& loss) {
  constexpr double kStep = 1e-6;
  Eigen::MatrixXd gradient(p[at].rows(), p[at].cols());
  for (Eigen::Index i = 0; i < gradient.size(); ++i) {
    const double value = p[at].data()[i];
    p[at].data()[i] = value + kStep;
    const double above = loss(p);
    p[at].data()[i] = value - kStep;
    const double below = loss(p);
    p[at].data()[i] = value;
    gradient.data()[i] = (above - below) / (2.0 * kStep);
  }
  return gradient;
}

}  // namespace neuroshard::testing_train
