// Fits the physical estimate of computation costs to measured ones.
#pragma once

#include <Eigen/Core>

#include "neuroshard/cost/compute/physical_estimate.h"

namespace neuroshard {

/// Weights >= 0 that make the estimates of the samples, whose summed work terms are the columns of
/// `terms`, relatively closest to `cost_ms`: the squared error over the product of cost and
/// estimate, which treats a factor too high and too low alike. The offset and the weight of a piece
/// are kept above 0, however little the samples tell of them. Rounded to fp32, as model files keep
/// them.
[[nodiscard]] PhysicalEstimate fit_physical_estimate(const Eigen::MatrixXd& terms,
                                                     const Eigen::VectorXd& cost_ms);

}  // namespace neuroshard
