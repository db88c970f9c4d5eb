// Evaluation of the communication network.
#include "neuroshard/cost/communication/communication_inference.h"

#include <algorithm>

#include "neuroshard/cost/dense_kernel.h"

namespace neuroshard {

namespace {

std::size_t padded_size(int outputs) {
  constexpr std::size_t kPadding = kernels::kDensePadding;
  return (static_cast<std::size_t>(outputs) + kPadding - 1) / kPadding * kPadding;
}

}  // namespace

CommunicationInference::Layer CommunicationInference::laid_out(const DenseLayer& layer, int first,
                                                               int count) {
  Layer result;
  result.inputs = static_cast<std::size_t>(count);
  result.outputs = static_cast<std::size_t>(layer.outputs);
  result.padded = padded_size(layer.outputs);
  result.weights.assign(result.inputs * result.padded, 0.0F);
  for (int i = 0; i < count; ++i) {
    for (int o = 0; o < layer.outputs; ++o) {
      result.weights[static_cast<std::size_t>(i) * result.padded + o] =
          layer.weights[static_cast<std::size_t>(first + i) * layer.outputs + o];
    }
  }
  result.bias.assign(result.padded, 0.0F);
  std::copy(layer.bias.begin(), layer.bias.end(), result.bias.begin());
  return result;
}

CommunicationInference::CommunicationInference(const CommunicationNetwork& network) {
  for (const DenseLayer& layer : network.encoder) {
    encoder_.push_back(laid_out(layer, 0, layer.inputs));
  }
  Layer& first = encoder_.front();
  for (std::size_t i = 0; i < first.inputs; ++i) {
    for (std::size_t o = 0; o < first.padded; ++o) {
      float& weight = first.weights[i * first.padded + o];
      weight *= network.feature_scale[i];
      first.bias[o] -= weight * network.feature_mean[i];
    }
  }
  const int units = network.encoder.back().outputs;
  for (const DenseLayer& layer : network.head) {
    head_.push_back(laid_out(layer, 0, head_.empty() ? units : layer.inputs));
  }
  head_context_ = laid_out(network.head.front(), units, 2 * units);
}

void CommunicationInference::apply(const Layer& layer, const std::vector<float>& bias, bool relu,
                                   std::size_t devices, Scratch& scratch) {
  const std::size_t stride = scratch.rows.size() / devices;
  scratch.next_rows.resize(devices * layer.padded);
  kernels::dense_rows(scratch.rows.data(), stride, devices, layer.inputs, layer.weights.data(),
                      bias.data(), layer.padded, relu, scratch.next_rows.data(), layer.padded);
  scratch.rows.swap(scratch.next_rows);
}

void CommunicationInference::pool(std::size_t devices, Scratch& scratch) const {
  const std::size_t stride = scratch.rows.size() / devices;
  const std::size_t units = head_context_.inputs / 2;
  scratch.pooled.resize(2 * units);
  scratch.context.resize(head_context_.padded);
  float* mean = scratch.pooled.data();
  float* largest = mean + units;
  std::copy_n(scratch.rows.data(), units, mean);
  std::copy_n(scratch.rows.data(), units, largest);
  for (std::size_t d = 1; d < devices; ++d) {
    const float* code = scratch.rows.data() + d * stride;
    for (std::size_t u = 0; u < units; ++u) {
      mean[u] += code[u];
      largest[u] = std::max(largest[u], code[u]);
    }
  }
  const float share = 1.0F / static_cast<float>(devices);
  for (std::size_t u = 0; u < units; ++u) mean[u] *= share;
  kernels::dense_rows(mean, 2 * units, 1, 2 * units, head_context_.weights.data(),
                      head_context_.bias.data(), head_context_.padded, false,
                      scratch.context.data(), head_context_.padded);
}

void CommunicationInference::run(std::span<const float> features, std::span<float> y,
                                 Scratch& scratch) const {
  const std::size_t devices = y.size();
  scratch.rows.assign(features.begin(), features.end());
  for (const Layer& layer : encoder_) apply(layer, layer.bias, true, devices, scratch);
  pool(devices, scratch);
  for (std::size_t i = 0; i < head_.size(); ++i) {
    apply(head_[i], i == 0 ? scratch.context : head_[i].bias, i + 1 < head_.size(), devices,
          scratch);
  }
  const std::size_t stride = scratch.rows.size() / devices;
  for (std::size_t d = 0; d < devices; ++d) y[d] = scratch.rows[d * stride];
}

}  // namespace neuroshard
