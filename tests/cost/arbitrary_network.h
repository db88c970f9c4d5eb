// Random computation cost networks that keep the constraints of their architecture, for tests.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/core/random.h"
#include "neuroshard/cost/compute/neural_compute_model.h"

namespace neuroshard::testing_networks {

struct NetworkSizes {
  std::vector<int> encoder{12, 8, 5};
  int head = 9;
};

inline DenseLayer random_layer(int inputs, int outputs, double low, double high, Random& random) {
  DenseLayer layer{inputs, outputs, {}, {}};
  for (int i = 0; i < inputs * outputs; ++i) {
    layer.weights.push_back(static_cast<float>(random.uniform(low, high)));
  }
  for (int i = 0; i < outputs; ++i) {
    layer.bias.push_back(static_cast<float>(random.uniform(-1.0, 1.0)));
  }
  return layer;
}

/// Weights of a size that keeps activations near 1 for features of up to about 40.
inline DenseLayer encoder_layer(int inputs, int outputs, Random& random) {
  const double bound = std::sqrt(3.0 / inputs);
  return random_layer(inputs, outputs, -bound, bound, random);
}

inline std::vector<float> random_values(std::size_t count, double low, double high,
                                        Random& random) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random.uniform(low, high)));
  }
  return values;
}

/// The constraints of resource_loads: head, output, linear and offset at least 0. The published
/// network may have any weights.
inline ComputeNetwork random_network(ComputeArchitecture architecture, std::uint64_t seed,
                                     const NetworkSizes& sizes = {}) {
  Random random(seed);
  const bool loads = architecture == ComputeArchitecture::resource_loads;
  const double low = loads ? 0.0 : -1.0;
  ComputeNetwork network;
  network.architecture = architecture;
  network.schema = loads ? FeatureSchema::extended : FeatureSchema::published;
  const std::size_t features = feature_names(network.schema).size();
  network.feature_mean = random_values(features, 0.0, 20.0, random);
  network.feature_scale = random_values(features, 0.0, 0.3, random);
  int inputs = static_cast<int>(features);
  for (std::size_t i = 0; i < sizes.encoder.size(); ++i) {
    if (loads && i + 1 == sizes.encoder.size()) inputs += static_cast<int>(features);
    network.encoder.push_back(encoder_layer(inputs, sizes.encoder[i], random));
    inputs = sizes.encoder[i];
  }
  network.head = random_layer(inputs, sizes.head, low, 1.0, random);
  network.head_output = random_values(sizes.head, low, 1.0, random);
  if (loads) network.linear = random_values(inputs, 0.0, 1.0, random);
  network.offset = static_cast<float>(random.uniform(0.0, 0.1));
  return network;
}

/// A model that claims to have been trained on everything that these tests use.
inline ComputeModelInfo wide_info(std::string name = "random") {
  ComputeModelInfo info;
  info.name = std::move(name);
  info.hardware = R"({"kind":"cpu","name":"test"})";
  info.operator_info = R"({"name":"test","version":1})";
  info.data_sha256 = std::string(64, '0');
  info.range = {1, kMaxBatchSize, 1, 128, 1'000'000, 50.0, 15, {Optimizer::sgd}, {DataType::fp32}};
  info.metrics = {{"unseen_tables.mape", 0.0375}, {"seed", 3.0}};
  return info;
}

/// An ensemble of 1, 2 or 3 networks, which share their standardisation as trained ones do.
inline std::shared_ptr<const NeuralComputeModel> random_model(ComputeArchitecture architecture,
                                                              std::uint64_t seed,
                                                              const NetworkSizes& sizes = {}) {
  std::vector<ComputeNetwork> members{random_network(architecture, seed, sizes)};
  for (std::uint64_t member = 1; member <= seed % 3; ++member) {
    members.push_back(random_network(architecture, mix64(seed + member), sizes));
    members.back().feature_mean = members.front().feature_mean;
    members.back().feature_scale = members.front().feature_scale;
  }
  return std::make_shared<NeuralComputeModel>(std::move(members), wide_info());
}

}  // namespace neuroshard::testing_networks
