// Random computation cost networks that keep the constraints of their architecture, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/compute/network_bounds.h"
#include "neuroshard/cost/compute/neural_compute_model.h"
#include "neuroshard/cost/compute/piece_work.h"

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

/// Of a machine that might exist: bytes, lines and lookups cost nanoseconds and less, and some
/// kinds of work cost nothing, as after a fit. In fp32, as model files keep it.
inline PhysicalEstimate random_estimate(std::uint64_t seed) {
  Random random(mix64(seed) + 1);
  PhysicalEstimate estimate;
  estimate.offset_ms =
      static_cast<double>(static_cast<float>(std::exp2(random.uniform(-9.0, -4.0))));
  for (const std::string_view term : work_terms()) {
    double weight = std::exp2(random.uniform(-24.0, -17.0));
    if (term == work_terms().front()) {
      weight = std::exp2(random.uniform(-12.0, -6.0));
    } else if (term.ends_with("bytes")) {
      weight /= 64.0;
    } else if (random.uniform() < 0.5) {
      weight = 0.0;
    }
    estimate.weights_ms.push_back(static_cast<double>(static_cast<float>(weight)));
  }
  return estimate;
}

/// Gives each weight of a bounded network the sign that it must have.
inline void set_signs(ComputeNetwork& network) {
  const std::size_t last = network.encoder.size() - 1;
  const auto growing = static_cast<int>(num_growing_features(network.schema));
  for (std::size_t l = 0; l <= last; ++l) {
    DenseLayer& layer = network.encoder[l];
    const int hidden = l == 0 ? 0 : network.encoder[l - 1].outputs;
    const auto features = static_cast<int>(network.feature_mean.size());
    for (int input = 0; input < layer.inputs; ++input) {
      const bool is_free = input >= hidden && (input - hidden) % features >= growing;
      if (is_free) continue;
      for (int unit = 0; unit < layer.outputs; ++unit) {
        float& weight = layer.weights[input * layer.outputs + unit];
        const float in = input < hidden ? unit_sign(input, hidden) : 1.0F;
        const float out = l == last ? 1.0F : unit_sign(unit, layer.outputs);
        weight = std::abs(weight) * in * out;
      }
    }
  }
}

/// The last layer's weights and bias are changed so that its outputs scatter around the logarithm
/// of the estimate: some loads are near their bounds then, others are not.
inline void center_on_estimate(ComputeNetwork& network) {
  DenseLayer& last = network.encoder.back();
  const int estimate_at = last.inputs - static_cast<int>(network.feature_mean.size());
  constexpr float kLn2 = std::numbers::ln2_v<float>;
  for (float& weight : last.weights) weight *= 0.2F;
  for (int unit = 0; unit < last.outputs; ++unit) {
    last.weights[estimate_at * last.outputs + unit] = kLn2 / network.feature_scale[0];
    last.bias[static_cast<std::size_t>(unit)] += kLn2 * network.feature_mean[0];
  }
}

/// Scales the head of a bounded network so that its slopes are within their limits.
inline void set_slopes(ComputeNetwork& network, Random& random) {
  const auto scale = [](std::vector<float>& values, double factor) {
    for (float& value : values) value *= static_cast<float>(factor);
  };
  const HeadSlopes before = head_slopes(network);
  const double least = random.uniform(1.001 * kLeastSlope, 1.2);
  scale(network.linear, least / before.least);
  const double most = random.uniform(least, 0.999 * kMostSlope);
  scale(network.head_output, (most - least) / (before.most - before.least));
}

/// A bounded network keeps every constraint of ComputeArchitecture::bounded_loads; the published
/// one may have any weights.
inline ComputeNetwork random_network(ComputeArchitecture architecture, std::uint64_t seed,
                                     const NetworkSizes& sizes = {}) {
  Random random(seed);
  const bool bounded = architecture == ComputeArchitecture::bounded_loads;
  const double low = bounded ? 0.0 : -1.0;
  ComputeNetwork network;
  network.architecture = architecture;
  network.schema = bounded ? FeatureSchema::work : FeatureSchema::published;
  const std::size_t features = feature_names(network.schema).size();
  network.feature_mean = random_values(features, 0.0, 20.0, random);
  network.feature_scale = random_values(features, 0.0, 0.3, random);
  network.feature_scale[0] = static_cast<float>(random.uniform(0.05, 0.3));
  int inputs = static_cast<int>(features);
  for (std::size_t i = 0; i < sizes.encoder.size(); ++i) {
    if (bounded && i + 1 == sizes.encoder.size()) inputs += static_cast<int>(features);
    network.encoder.push_back(encoder_layer(inputs, sizes.encoder[i], random));
    inputs = sizes.encoder[i];
  }
  network.head = random_layer(inputs, sizes.head, low, 1.0, random);
  network.head_output = random_values(sizes.head, low, 1.0, random);
  network.offset = static_cast<float>(random.uniform(0.0, 0.1));
  if (!bounded) return network;
  for (float& bias : network.head.bias) bias = -std::abs(bias);
  network.linear = random_values(inputs, 0.1, 1.0, random);
  network.estimate = random_estimate(seed);
  network.offset = static_cast<float>(network.estimate.offset_ms * random.uniform(0.3, 3.0));
  set_signs(network);
  center_on_estimate(network);
  set_slopes(network, random);
  return network;
}

/// A model that claims to have been trained on everything that these tests use.
inline ComputeModelInfo wide_info(std::string name = "random") {
  ComputeModelInfo info;
  info.name = std::move(name);
  info.hardware = R"({"kind":"cpu","name":"test"})";
  info.operator_info = R"({"name":"test","version":1})";
  info.data_sha256 = std::string(64, '0');
  info.range = {.min_batch_size = 1,
                .max_batch_size = kMaxBatchSize,
                .min_columns = 1,
                .max_columns = 128,
                .min_embeddings = 10,
                .max_embeddings = 1'000'000,
                .min_pooling_factor = 0.1,
                .max_pooling_factor = 50.0,
                .max_hits_per_row = 1000.0,
                .max_pieces = 15,
                .optimizers = {Optimizer::sgd},
                .data_types = {DataType::fp32}};
  info.metrics = {{"unseen_tables.mape", 0.0375}, {"seed", 3.0}};
  return info;
}

/// Factors of a set's widest piece, as a model file may have them.
inline std::vector<float> random_widest_factors(std::uint64_t seed) {
  Random random(mix64(seed) + 2);
  std::vector<float> factors = random_values(kWidestClasses, kLeastWidestFactor, 1.0, random);
  std::sort(factors.begin(), factors.end());
  factors.back() = 1.0F;
  return factors;
}

/// An ensemble of 1, 2 or 3 networks, which share their standardisation and estimate as trained
/// ones do. A third of the bounded ones, but none of the seeds up to 5, depend on the widest piece,
/// and a half of them have an offset of row-wise Adagrad's.
inline std::shared_ptr<const NeuralComputeModel> random_model(ComputeArchitecture architecture,
                                                              std::uint64_t seed,
                                                              const NetworkSizes& sizes = {}) {
  std::vector<ComputeNetwork> members{random_network(architecture, seed, sizes)};
  const ComputeNetwork first = members.front();
  for (std::uint64_t member = 1; member <= seed % 3; ++member) {
    ComputeNetwork network = random_network(architecture, mix64(seed + member), sizes);
    if (architecture == ComputeArchitecture::bounded_loads) {
      network.offset *= static_cast<float>(first.estimate.offset_ms / network.estimate.offset_ms);
      network.estimate = first.estimate;
    }
    network.feature_mean = first.feature_mean;
    network.feature_scale = first.feature_scale;
    members.push_back(std::move(network));
  }
  if (architecture == ComputeArchitecture::bounded_loads && seed > 5 && mix64(seed) % 3 == 0) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      members[m].widest_factors = random_widest_factors(seed + m);
    }
  }
  if (architecture == ComputeArchitecture::bounded_loads && seed > 5 && mix64(seed + 1) % 2 == 0) {
    for (ComputeNetwork& member : members) {
      const auto highest = static_cast<float>(member.estimate.offset_ms * kEstimateFactor);
      member.rowwise_adagrad_offset = 0.5F * (member.offset + highest);
    }
  }
  return std::make_shared<NeuralComputeModel>(std::move(members), wide_info());
}

}  // namespace neuroshard::testing_networks
