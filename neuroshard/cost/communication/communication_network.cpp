// Evaluation of the communication network; once for a topology, so it need not be fast.
#include "neuroshard/cost/communication/communication_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace neuroshard {

MixtureWeights mixture_weights(const CommunicationNetwork& network,
                               std::span<const float> context) {
  assert(context.size() == network.feature_mean.size());
  assert(network.layers.back().outputs == static_cast<int>(kNumLastEnds));
  std::vector<double> x;
  for (std::size_t i = 0; i < context.size(); ++i) {
    const double centred = static_cast<double>(context[i]) - network.feature_mean[i];
    x.push_back(centred * network.feature_scale[i]);
  }
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const DenseLayer& layer = network.layers[l];
    std::vector<double> y(layer.bias.begin(), layer.bias.end());
    for (int i = 0; i < layer.inputs; ++i) {
      for (int o = 0; o < layer.outputs; ++o) {
        y[o] += x[i] * layer.weights[static_cast<std::size_t>(i) * layer.outputs + o];
      }
    }
    if (l + 1 < network.layers.size()) {
      for (double& value : y) value = std::max(value, 0.0);
    }
    x = std::move(y);
  }
  const double largest = *std::max_element(x.begin(), x.end());
  MixtureWeights weights{};
  double sum = 0.0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    weights[k] = std::exp(x[k] - largest);
    sum += weights[k];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double mixed(const AllToAllEnds& ends, const MixtureWeights& weights) {
  double rest = 0.0;
  for (std::size_t k = 0; k < weights.size(); ++k) rest += weights[k] * ends.rests_ms[k];
  return rest;
}

}  // namespace neuroshard
