// Fits the physical estimate of computation costs to measured ones.
#pragma once

#include <Eigen/Core>

#include "neuroshard/cost/compute/physical_estimate.h"

namespace neuroshard {

/// Weights >= 0 that make the estimates of the samples, whose summed work terms are the columns of
/// `terms`, relatively closest to `cost_ms`: the squared error over the product of cost and
/// estimate, which treats a factor too high and too low alike; `granularity_ms` is added to both of
/// these, so that errors of less than it count little. The offset and the weight of a piece are
/// kept above 0, however little the samples tell of them. Rounded to fp32, as model files keep
/// them.
[[nodiscard]] PhysicalEstimate fit_physical_estimate(const Eigen::MatrixXd& terms,
                                                     const Eigen::VectorXd& cost_ms,
                                                     double granularity_ms = 0.0);

/// The same for few samples of a machine or an operator that `prior` is thought to resemble: its
/// weights are kept as far as the samples do not tell otherwise. That a weight doubles or vanishes
/// counts as much as an error of `strength` (above 0; 1 is 100 %) in one sample.
[[nodiscard]] PhysicalEstimate adapted_estimate(const Eigen::MatrixXd& terms,
                                                const Eigen::VectorXd& cost_ms,
                                                const PhysicalEstimate& prior, double strength,
                                                double granularity_ms = 0.0);

}  // namespace neuroshard
