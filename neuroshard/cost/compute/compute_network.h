// The parameters of a computation cost network, which training produces and inference uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/physical_estimate.h"
#include "neuroshard/cost/compute/shard_features.h"

namespace neuroshard {

/// How a piece's features become a contribution and a sum of contributions a cost.
enum class ComputeArchitecture {
  /// The paper's: encoder with ReLU after every layer -> sum -> hidden layer with ReLU -> cost.
  published,
  /// Each piece puts loads [ms] > 0 on a few learned resources; a device's cost is a convex,
  /// increasing, piecewise-linear function of its summed loads:
  ///   load_k(piece) = E exp(B tanh((u_k - ln E) / B)),  L = sum over pieces,
  ///   cost = c0 + s L + sum_j v_j relu(w_j L + b_j)   with c0, s, v, w >= 0 and b <= 0.
  /// E [ms] is the physical estimate of the piece and u a network of its features that rises with
  /// each of the growing ones (FeatureSchema::work): its weights have the signs that this takes
  /// (`unit_sign`). So
  ///   - a load lies within a factor e^B of the estimate, and where no data reach it grows like it;
  ///     tanh goes there without a kink, and the product rises with u and with E;
  ///   - with sum s >= kLeastSlope and sum (s + v w) <= kMostSlope, a device's cost lies within
  ///     kEstimateFactor of its estimate, c0 + sum E;
  ///   - more lookups, a larger batch or more columns never cost less;
  ///   - a cost never falls when a piece is added, and, being convex, is bounded from below on the
  ///     slowest device by the cost of the mean load.
  /// With `widest_factors`, L is the sum times that of the set's widest piece, and so is what the
  /// cost lies within kEstimateFactor of; it still never falls, but is convex only within a class.
  /// With `rowwise_adagrad_offset`, that is c0 where the optimizer is row-wise Adagrad.
  bounded_loads,
};

/// Predictions lie within this factor of the physical estimate.
inline constexpr double kEstimateFactor = 4.0;
/// Of the head: its slope in the sum of all loads, at least and at the most.
inline constexpr double kLeastSlope = 0.70710678;
inline constexpr double kMostSlope = 1.41421356;
/// B: the natural logarithm of kEstimateFactor * kLeastSlope.
inline constexpr double kLogLoadBound = 1.03972077;

/// In the layers of a bounded network, the first half of the units rise with the growing features,
/// the others fall: after ReLU these give concave parts, as a network of rising units alone could
/// only be convex. A weight from unit to unit has the product of their signs.
[[nodiscard]] constexpr float unit_sign(int unit, int num_units) {
  return 2 * unit < num_units ? 1.0F : -1.0F;
}

[[nodiscard]] std::string_view to_string(ComputeArchitecture architecture);
/// Throws InputError naming `place` for an architecture this build does not have.
[[nodiscard]] ComputeArchitecture compute_architecture_from_string(std::string_view name,
                                                                   const std::string& place);

/// y = weights x + bias; weights are outputs x inputs, column-major.
struct DenseLayer {
  int inputs = 0;
  int outputs = 0;
  std::vector<float> weights;
  std::vector<float> bias;
};

/// Classes of a set of pieces by its widest one [columns]: up to each of these, and wider. FBGEMM's
/// kernels on GPUs are chosen by the widest piece of all that one operator has: with narrow ones
/// alone, fewer threads look up a row.
inline constexpr std::array<std::int64_t, 5> kWidestPiece{32, 64, 128, 256, 512};
inline constexpr std::size_t kWidestClasses = kWidestPiece.size() + 1;

/// Of a set whose widest piece has this many columns.
[[nodiscard]] constexpr std::size_t widest_class(std::int64_t num_columns) {
  std::size_t number = 0;
  while (number < kWidestPiece.size() && num_columns > kWidestPiece[number]) ++number;
  return number;
}

/// Least factor of a class.
inline constexpr float kLeastWidestFactor = 0.25F;

struct ComputeNetwork {
  ComputeArchitecture architecture = ComputeArchitecture::bounded_loads;
  FeatureSchema schema = FeatureSchema::work;
  PhysicalEstimate estimate;         ///< bounded_loads: the same for all members of an ensemble
  std::vector<float> feature_mean;   ///< subtracted from each feature,
  std::vector<float> feature_scale;  ///< then multiplied
  /// bounded_loads: the last layer sees the hidden layer and the features, one after the other.
  std::vector<DenseLayer> encoder;
  DenseLayer head;                 ///< hidden layer of the head
  std::vector<float> head_output;  ///< one per hidden unit [ms]
  std::vector<float> linear;       ///< bounded_loads: s, one per resource; else empty
  float offset = 0.0F;             ///< c0, the cost of running anything at all [ms]
  /// bounded_loads: c0 with row-wise Adagrad, no less than with SGD; none: the same.
  std::optional<float> rowwise_adagrad_offset;
  /// bounded_loads: by what a set's summed loads are multiplied, for each class of its widest
  /// piece; from kLeastWidestFactor on, none below the one before it, the last 1. Empty: 1 for all.
  std::vector<float> widest_factors;
};

}  // namespace neuroshard
