// How well predicted costs match measured ones: the one definition of every metric.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace neuroshard {

/// A prediction of less is taken for as much where it is divided by [ms]: ratios stay finite.
inline constexpr double kLeastPredicted_ms = 1e-9;

struct PredictionMetrics {
  double mse = 0.0;             ///< mean squared error [ms^2]
  double mae = 0.0;             ///< mean absolute error [ms]
  double mape = 0.0;            ///< mean absolute error relative to the measured value; 0.05 is 5 %
  double median = 0.0;          ///< median of the absolute errors relative to the measured value
  double percentile_95 = 0.0;   ///< 95 % of these are at most this
  double largest_factor = 1.0;  ///< the worst of predicted over measured and its inverse
  std::optional<double> kendall_tau;  ///< nothing where it is not defined
  std::size_t count = 0;
};

/// Of `predicted` against `measured`, both [ms], measured > 0.
[[nodiscard]] PredictionMetrics prediction_metrics(std::span<const double> predicted,
                                                   std::span<const double> measured);

/// Kendall's tau-b: rank correlation in [-1, 1], ties accounted for; O(n log n) (Knight 1966).
/// Not defined, and nothing, if either side is constant.
[[nodiscard]] std::optional<double> kendall_tau(std::span<const double> a,
                                                std::span<const double> b);

}  // namespace neuroshard
