// Iteratively reweighted nonnegative least squares.
#include "neuroshard/train/compute/estimate_fit.h"

#include <Eigen/QR>
#include <algorithm>

#include "neuroshard/workload/generate/nonnegative_least_squares.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kReweightings = 8;
/// Least offset, as a share of the cheapest sample, and least weight of a piece, of the offset.
constexpr double kLeastOffset = 0.1;
constexpr double kLeastPiece = 0.01;

/// The x >= 0 that minimises |weight * (a x - b)|, columns of `a` being scaled for the solution.
VectorXd weighted_fit(const MatrixXd& a, const VectorXd& b, const VectorXd& weight) {
  MatrixXd system(a.rows(), a.cols() + 1);
  system.leftCols(a.cols()) = weight.asDiagonal() * a;
  system.col(a.cols()) = weight.cwiseProduct(b);
  VectorXd scale = system.leftCols(a.cols()).colwise().norm();
  scale = (scale.array() > 0.0).select(scale, 1.0);
  system.leftCols(a.cols()) *= scale.cwiseInverse().asDiagonal();
  // The triangle has the same solution as the many rows.
  const Eigen::HouseholderQR<MatrixXd> qr(system);
  const MatrixXd triangle =
      qr.matrixQR().topRows(std::min(a.cols() + 1, a.rows())).triangularView<Eigen::Upper>();
  return nonnegative_least_squares(triangle.leftCols(a.cols()), triangle.col(a.cols()))
      .cwiseQuotient(scale);
}

}  // namespace

PhysicalEstimate fit_physical_estimate(const MatrixXd& terms, const VectorXd& cost_ms) {
  const Index samples = terms.cols();
  MatrixXd a(samples, terms.rows() + 1);  // the last column is the offset
  a.leftCols(terms.rows()) = terms.transpose();
  a.col(terms.rows()).setOnes();
  VectorXd estimate = cost_ms;
  VectorXd x;
  for (int i = 0; i < kReweightings; ++i) {
    x = weighted_fit(a, cost_ms, cost_ms.cwiseProduct(estimate).cwiseSqrt().cwiseInverse());
    estimate = (a * x).cwiseMax(1e-3 * cost_ms);
  }
  PhysicalEstimate result;
  const double offset = std::max(x[terms.rows()], kLeastOffset * cost_ms.minCoeff());
  result.offset_ms = static_cast<double>(static_cast<float>(offset));
  for (Index term = 0; term < terms.rows(); ++term) {
    const double least = term == 0 ? kLeastPiece * offset : 0.0;
    result.weights_ms.push_back(static_cast<double>(static_cast<float>(std::max(x[term], least))));
  }
  return result;
}

}  // namespace neuroshard
