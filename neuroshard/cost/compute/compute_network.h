// The parameters of a computation cost network, which training produces and inference uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/shard_features.h"

namespace neuroshard {

/// How a piece's features become a contribution and a sum of contributions a cost.
enum class ComputeArchitecture {
  /// The paper's: encoder with ReLU after every layer -> sum -> hidden layer with ReLU -> cost.
  published,
  /// Each piece puts loads [ms] > 0 on a few learned resources; a device's cost is a convex,
  /// increasing, piecewise-linear function of its summed loads:
  ///   load_k(piece) = exp(encoder_k(features)),  L = sum over pieces,
  ///   cost = c0 + s L + sum_j v_j relu(w_j L + b_j)   with c0, s, v, w >= 0.
  /// So a cost is positive, never falls when a piece is added, and, being convex, is bounded from
  /// below on the slowest device by the cost of the mean load.
  resource_loads,
};

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

struct ComputeNetwork {
  ComputeArchitecture architecture = ComputeArchitecture::resource_loads;
  FeatureSchema schema = FeatureSchema::extended;
  std::vector<float> feature_mean;   ///< subtracted from each feature,
  std::vector<float> feature_scale;  ///< then multiplied
  /// resource_loads: the last layer sees the hidden layer and the features, one after the other.
  std::vector<DenseLayer> encoder;
  DenseLayer head;                 ///< hidden layer of the head
  std::vector<float> head_output;  ///< one per hidden unit [ms]
  std::vector<float> linear;       ///< resource_loads: s, one per resource; else empty
  float offset = 0.0F;             ///< c0, the cost of running anything at all [ms]
};

}  // namespace neuroshard
