// The laid-out communication network against its formula, on every instruction set there is here.
#include "neuroshard/cost/communication/communication_inference.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "neuroshard/core/random.h"

namespace neuroshard {
namespace {

DenseLayer random_layer(int inputs, int outputs, Random& random) {
  DenseLayer layer{inputs, outputs, {}, {}};
  const double bound = 1.0 / std::sqrt(inputs);
  for (int i = 0; i < inputs * outputs; ++i) {
    layer.weights.push_back(static_cast<float>(random.uniform(-bound, bound)));
  }
  for (int i = 0; i < outputs; ++i) {
    layer.bias.push_back(static_cast<float>(random.uniform(-1.0, 1.0)));
  }
  return layer;
}

CommunicationNetwork random_network(int features, int code, int hidden, Random& random) {
  CommunicationNetwork network;
  for (int i = 0; i < features; ++i) {
    network.feature_mean.push_back(static_cast<float>(random.uniform(-1.0, 1.0)));
    network.feature_scale.push_back(static_cast<float>(random.uniform(0.0, 2.0)));
  }
  network.encoder = {random_layer(features, 7, random), random_layer(7, code, random)};
  network.head = {random_layer(3 * code, hidden, random), random_layer(hidden, 1, random)};
  return network;
}

std::vector<double> layer_of(const DenseLayer& layer, const std::vector<double>& x, bool relu) {
  std::vector<double> y(layer.bias.begin(), layer.bias.end());
  for (int o = 0; o < layer.outputs; ++o) {
    for (int i = 0; i < layer.inputs; ++i) y[o] += layer.weights[i * layer.outputs + o] * x[i];
    if (relu) y[o] = std::max(y[o], 0.0);
  }
  return y;
}

/// As communication_network.h says.
std::vector<double> by_formula(const CommunicationNetwork& network,
                               const std::vector<float>& features, std::size_t devices) {
  const std::size_t count = network.feature_mean.size();
  std::vector<std::vector<double>> codes;
  for (std::size_t d = 0; d < devices; ++d) {
    std::vector<double> x;
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back((features[d * count + i] - network.feature_mean[i]) * network.feature_scale[i]);
    }
    for (const DenseLayer& layer : network.encoder) x = layer_of(layer, x, true);
    codes.push_back(x);
  }
  const std::size_t units = codes[0].size();
  std::vector<double> mean(units, 0.0);
  std::vector<double> largest = codes[0];
  for (const std::vector<double>& code : codes) {
    for (std::size_t u = 0; u < units; ++u) {
      mean[u] += code[u] / static_cast<double>(devices);
      largest[u] = std::max(largest[u], code[u]);
    }
  }
  std::vector<double> y;
  for (std::vector<double> x : codes) {
    x.insert(x.end(), mean.begin(), mean.end());
    x.insert(x.end(), largest.begin(), largest.end());
    for (std::size_t i = 0; i < network.head.size(); ++i) {
      x = layer_of(network.head[i], x, i + 1 < network.head.size());
    }
    y.push_back(x[0]);
  }
  return y;
}

TEST(CommunicationInference, IsTheFormulaOnEveryInstructionSet) {
  Random random(1);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    CommunicationInference::Scratch scratch;
    // Sizes that are and are not multiples of vectors and of blocks of rows, larger and smaller
    // ones after each other in the same scratch.
    for (const int code : {5, 16, 19}) {
      const CommunicationNetwork network = random_network(15, code, code == 19 ? 33 : 16, random);
      const CommunicationInference inference(network);
      for (const std::size_t devices : {9, 1, 4, 2, 130, 3}) {
        std::vector<float> features;
        for (std::size_t i = 0; i < devices * 15; ++i) {
          features.push_back(static_cast<float>(random.uniform(-3.0, 3.0)));
        }
        const std::vector<double> expected = by_formula(network, features, devices);
        std::vector<float> y(devices);
        inference.run(features, y, scratch);
        for (std::size_t d = 0; d < devices; ++d) {
          ASSERT_NEAR(y[d], expected[d], 1e-4 * (1.0 + std::abs(expected[d])))
              << hwy::TargetName(target) << ", " << devices << " devices, code of " << code;
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace neuroshard
