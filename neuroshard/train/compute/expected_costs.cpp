// A Gaussian process over sets of pieces.
#include "neuroshard/train/compute/expected_costs.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/piece_work.h"
#include "neuroshard/train/compute/dataset_batch.h"
#include "neuroshard/train/gaussian_process.h"

namespace neuroshard {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Its time grows with the third power of their number.
constexpr std::size_t kMostKnown = 3000;
/// Coordinates count no further than this from their mean, in standard deviations.
constexpr double kFarthest = 4.0;
/// A coordinate that hardly differs among sets is not blown up.
constexpr double kLeastDeviation = 1e-3;

Index index_of_term(std::string_view name) {
  const auto& terms = work_terms();
  return std::find(terms.begin(), terms.end(), name) - terms.begin();
}

/// A set's coordinates are one column.
MatrixXd coordinates_of(const ComputeDataset& dataset, const PhysicalEstimate& estimate,
                        const std::vector<double>& costs_ms) {
  const VectorXd weights =
      Eigen::Map<const VectorXd>(estimate.weights_ms.data(), dataset.work.rows());
  const Index pieces_term = index_of_term("pieces");
  const Index samples_term = index_of_term("samples");
  MatrixXd coordinates(4 + weights.size(), static_cast<Index>(dataset.size()));
  for (std::size_t set = 0; set < dataset.size(); ++set) {
    const int first = dataset.first_piece[set];
    const int pieces = dataset.first_piece[set + 1] - first;
    const VectorXd work = dataset.work.middleCols(first, pieces).cast<double>().rowwise().sum();
    const VectorXd parts = weights.cwiseProduct(work);
    auto column = coordinates.col(static_cast<Index>(set));
    column << std::log(costs_ms[set]), std::log(static_cast<double>(pieces)),
        std::log(work[samples_term] / work[pieces_term]), std::log(costs_ms[set] / parts.sum()),
        (parts / parts.sum()).cwiseSqrt();
  }
  return coordinates;
}

}  // namespace

std::vector<double> expected_costs(const NeuralComputeModel& model, const ComputeDataset& measured,
                                   std::span<const int> known, const ComputeDataset& unmeasured,
                                   ThreadPool& pool) {
  const PhysicalEstimate& estimate = model.members().front().estimate;
  const std::vector<double> known_ms = costs_by(model, measured, pool);
  std::vector<double> costs_ms = costs_by(model, unmeasured, pool);
  const MatrixXd of_measured = coordinates_of(measured, estimate, known_ms);
  const MatrixXd of_others = coordinates_of(unmeasured, estimate, costs_ms);
  const VectorXd mean = of_others.rowwise().mean();
  const VectorXd deviation =
      (of_others.colwise() - mean).array().square().rowwise().mean().sqrt() + kLeastDeviation;
  const auto scaled = [&](const auto& coordinates) -> MatrixXd {
    return ((coordinates.colwise() - mean).array().colwise() / deviation.array())
        .max(-kFarthest)
        .min(kFarthest)
        .matrix();
  };
  const auto count = static_cast<Index>(std::min(known.size(), kMostKnown));
  MatrixXd points(of_measured.rows(), count);
  VectorXd differences(count);
  for (Index i = 0; i < count; ++i) {
    const int sample = known[static_cast<std::size_t>(i)];
    points.col(i) = of_measured.col(sample);
    differences[i] = std::log(measured.cost_ms[sample] / known_ms[sample]);
  }
  const VectorXd expected =
      GaussianProcess(scaled(points), differences).expected(scaled(of_others));
  for (std::size_t set = 0; set < costs_ms.size(); ++set) {
    costs_ms[set] *= std::exp(expected[static_cast<Index>(set)]);
  }
  return costs_ms;
}

}  // namespace neuroshard
