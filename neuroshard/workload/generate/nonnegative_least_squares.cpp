// The active set method: unknowns enter one by one while that lowers the residual.
#include "neuroshard/workload/generate/nonnegative_least_squares.h"

#include <Eigen/QR>
#include <algorithm>
#include <limits>
#include <vector>

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Least squares over the given columns only; the other unknowns are 0.
VectorXd solve_columns(const MatrixXd& a, const VectorXd& b, const std::vector<Index>& columns) {
  MatrixXd part(a.rows(), static_cast<Index>(columns.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    part.col(static_cast<Index>(i)) = a.col(columns[i]);
  }
  const VectorXd solution = part.colPivHouseholderQr().solve(b);
  VectorXd x = VectorXd::Zero(a.cols());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    x[columns[i]] = solution[static_cast<Index>(i)];
  }
  return x;
}

/// Moves x towards `target` until the first free unknown reaches 0, and fixes those that did.
void step_to_boundary(VectorXd& x, const VectorXd& target, std::vector<Index>& free) {
  double step = 1.0;
  for (const Index i : free) {
    if (target[i] <= 0.0) step = std::min(step, x[i] / (x[i] - target[i]));
  }
  const auto stays = [&](Index i) { return x[i] + step * (target[i] - x[i]) > 1e-14; };
  for (const Index i : free) {
    if (target[i] > 0.0 || stays(i)) {
      x[i] += step * (target[i] - x[i]);
    } else {
      x[i] = 0.0;
    }
  }
  std::erase_if(free, [&](Index i) { return x[i] <= 0.0; });
}

/// The fixed unknown whose increase lowers the residual most; -1 if none does.
Index best_entering(const MatrixXd& a, const VectorXd& residual, const std::vector<Index>& free,
                    double tolerance) {
  VectorXd gradient = a.transpose() * residual;
  for (const Index i : free) gradient[i] = -std::numeric_limits<double>::infinity();
  Index best = -1;
  return gradient.maxCoeff(&best) > tolerance ? best : -1;
}

}  // namespace

VectorXd nonnegative_least_squares(const MatrixXd& a, const VectorXd& b) {
  VectorXd x = VectorXd::Zero(a.cols());
  std::vector<Index> free;
  const double tolerance =
      1e-11 * a.cwiseAbs().colwise().sum().maxCoeff() * b.cwiseAbs().maxCoeff();
  const Index max_rounds = 3 * a.cols();  // ends cycles caused by rounding
  for (Index round = 0; round < max_rounds; ++round) {
    const Index entering = best_entering(a, b - a * x, free, tolerance);
    if (entering < 0) break;
    free.push_back(entering);
    VectorXd target = solve_columns(a, b, free);
    while (!free.empty() &&
           std::any_of(free.begin(), free.end(), [&](Index i) { return target[i] <= 0.0; })) {
      step_to_boundary(x, target, free);
      if (free.empty()) break;
      target = solve_columns(a, b, free);
    }
    x = free.empty() ? VectorXd::Zero(a.cols()).eval() : target;
  }
  return x;
}

}  // namespace neuroshard
