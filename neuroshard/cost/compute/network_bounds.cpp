// Checking the constraints of a bounded network.
#include "neuroshard/cost/compute/network_bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard {

namespace {

/// Weights are floats: what rounding them may amount to.
constexpr double kWeightRounding = 1e-4;

/// The sign of what feeds a layer: a unit of the layer before or a feature; 0 for a feature that
/// may have any weight.
float input_sign(const ComputeNetwork& network, std::size_t layer, int input) {
  const auto growing = static_cast<int>(num_growing_features(network.schema));
  const auto features = static_cast<int>(network.feature_mean.size());
  const int hidden = layer == 0 ? 0 : network.encoder[layer - 1].outputs;
  if (input < hidden) return unit_sign(input, hidden);
  // A layer that is the first and the last sees the features twice.
  return (input - hidden) % features < growing ? 1.0F : 0.0F;
}

bool has_right_signs(const ComputeNetwork& network, std::size_t index) {
  const DenseLayer& layer = network.encoder[index];
  const bool last = index + 1 == network.encoder.size();
  for (int input = 0; input < layer.inputs; ++input) {
    const float sign_in = input_sign(network, index, input);
    for (int unit = 0; unit < layer.outputs; ++unit) {
      const float sign_out = last ? 1.0F : unit_sign(unit, layer.outputs);
      if (layer.weights[input * layer.outputs + unit] * sign_in * sign_out < 0.0F) return false;
    }
  }
  return true;
}

}  // namespace

HeadSlopes head_slopes(const ComputeNetwork& network) {
  // Per load, then the least and the most over loads would be tighter for a single one; the sum is
  // what a piece with equal loads sees, and each load lies within the same factor of the estimate.
  HeadSlopes slopes;
  for (const float slope : network.linear) slopes.least += static_cast<double>(slope);
  slopes.most = slopes.least;
  const DenseLayer& head = network.head;
  for (int unit = 0; unit < head.outputs; ++unit) {
    double sum = 0.0;
    for (int k = 0; k < head.inputs; ++k) {
      sum += static_cast<double>(head.weights[k * head.outputs + unit]);
    }
    slopes.most += sum * static_cast<double>(network.head_output[unit]);
  }
  return slopes;
}

std::string broken_bound(const ComputeNetwork& network) {
  for (std::size_t layer = 0; layer < network.encoder.size(); ++layer) {
    if (!has_right_signs(network, layer)) return fmt::format("encoder.{}.weight", layer);
  }
  const auto& bias = network.head.bias;
  if (std::any_of(bias.begin(), bias.end(), [](float b) { return b > 0.0F; })) return "head.bias";
  for (const float scale : network.feature_scale) {
    if (scale < 0.0F) return "feature_scale";
  }
  const HeadSlopes slopes = head_slopes(network);
  if (slopes.least < kLeastSlope * (1.0 - kWeightRounding)) return "linear";
  if (slopes.most > kMostSlope * (1.0 + kWeightRounding)) return "head_output";
  const auto is_near_estimate = [&](float offset_ms) {
    const double offset = static_cast<double>(offset_ms) / network.estimate.offset_ms;
    return offset >= (1.0 - kWeightRounding) / kEstimateFactor &&
           offset <= (1.0 + kWeightRounding) * kEstimateFactor;
  };
  if (!is_near_estimate(network.offset)) return "offset";
  const std::optional<float>& of_adagrad = network.rowwise_adagrad_offset;
  if (of_adagrad && (*of_adagrad < network.offset || !is_near_estimate(*of_adagrad))) {
    return "rowwise_adagrad_offset";
  }
  return "";
}

}  // namespace neuroshard
