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

/// Each row an equation that weights (and, last, the offset) should fulfil.
struct Equations {
  MatrixXd a;
  VectorXd b;
};

/// That each weight is as in `prior`, where a change of as much as the weight itself is an error of
/// `strength`. A weight of 0 counts as if it made up half of the sample that has most of its work.
/// However little of some work there is among the samples, its weight is no freer for that:
/// elsewhere it may be all that there is.
Equations equations_of(const PhysicalEstimate& prior, const MatrixXd& terms,
                       const VectorXd& cost_ms, double strength) {
  constexpr double kShareOfNone = 0.5;
  const Index count = terms.rows() + 1;
  Equations result{MatrixXd::Zero(count, count), VectorXd(count)};
  for (Index i = 0; i < count; ++i) {
    const bool is_offset = i == terms.rows();
    const double weight =
        is_offset ? prior.offset_ms : prior.weights_ms[static_cast<std::size_t>(i)];
    double scale = weight;
    if (weight <= 0.0) {  // never the offset
      const double most = terms.row(i).transpose().cwiseQuotient(cost_ms).maxCoeff();
      scale = most > 0.0 ? kShareOfNone / most : 1.0;
    }
    result.a(i, i) = strength / scale;
    result.b[i] = strength * weight / scale;
  }
  return result;
}

/// Fits the samples and `equations` together.
PhysicalEstimate fitted(const MatrixXd& terms, const VectorXd& cost_ms, const Equations& equations,
                        double granularity_ms) {
  const Index samples = terms.cols();
  const Index more = equations.b.size();
  MatrixXd a(samples + more, terms.rows() + 1);  // the last column is the offset
  a.topLeftCorner(samples, terms.rows()) = terms.transpose();
  a.col(terms.rows()).setOnes();
  if (more > 0) a.bottomRows(more) = equations.a;
  VectorXd b(samples + more);
  b << cost_ms, equations.b;
  VectorXd weight = VectorXd::Ones(samples + more);
  VectorXd estimate = cost_ms;
  VectorXd x;
  for (int i = 0; i < kReweightings; ++i) {
    weight.head(samples) =
        ((cost_ms.array() + granularity_ms) * (estimate.array() + granularity_ms)).sqrt().inverse();
    x = weighted_fit(a, b, weight);
    estimate = (a.topRows(samples) * x).cwiseMax(1e-3 * cost_ms);
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

}  // namespace

PhysicalEstimate fit_physical_estimate(const MatrixXd& terms, const VectorXd& cost_ms,
                                       double granularity_ms) {
  return fitted(terms, cost_ms, {}, granularity_ms);
}

PhysicalEstimate adapted_estimate(const MatrixXd& terms, const VectorXd& cost_ms,
                                  const PhysicalEstimate& prior, double strength,
                                  double granularity_ms) {
  return fitted(terms, cost_ms, equations_of(prior, terms, cost_ms, strength), granularity_ms);
}

}  // namespace neuroshard
