// Communication models for tests: random networks, clusters for them, and the shipped ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/cost/communication/communication_context.h"
#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/cost/model_catalog.h"

namespace neuroshard::testing_networks {

using CommunicationModel = std::shared_ptr<const CommunicationCostModel>;

/// A shipped one, read once.
inline const CommunicationModel& shipped_communication(const std::string& name) {
  static std::map<std::string, CommunicationModel> loaded;
  CommunicationModel& model = loaded[name];
  if (!model) {
    Topology two_hosts;
    two_hosts.world_size = 2;
    two_hosts.local_world_size = 1;
    two_hosts.memory_bytes.assign(2, 1);
    model = load_cost_models({name}, two_hosts).communication;
  }
  return model;
}

inline DenseLayer random_communication_layer(int inputs, int outputs, Random& random) {
  DenseLayer layer{inputs, outputs, {}, {}};
  for (int i = 0; i < inputs * outputs; ++i) {
    layer.weights.push_back(static_cast<float>(random.uniform(-0.5, 0.5)));
  }
  for (int i = 0; i < outputs; ++i) {
    layer.bias.push_back(static_cast<float>(random.uniform(-1.0, 1.0)));
  }
  return layer;
}

/// Any parameters: the tested properties must hold for all of them.
inline std::shared_ptr<const CommunicationNetwork> random_communication_network(
    std::uint64_t seed) {
  Random random(seed);
  CommunicationNetwork network;
  const auto features = static_cast<int>(kNumContextFeatures);
  for (int i = 0; i < features; ++i) {
    network.feature_mean.push_back(static_cast<float>(random.uniform(-1.0, 1.0)));
    network.feature_scale.push_back(static_cast<float>(random.uniform(0.0, 2.0)));
  }
  network.layers = {random_communication_layer(features, 6, random),
                    random_communication_layer(6, static_cast<int>(kNumLastEnds), random)};
  return std::make_shared<CommunicationNetwork>(std::move(network));
}

/// "hosts" of one device each and "boxes" of up to four, which share cards in pairs.
inline CommunicationModelInfo two_clusters() {
  CommunicationModelInfo info;
  info.name = "two";
  info.clusters = {{.interconnect = {.name = "hosts",
                                     .devices_per_host = 1,
                                     .intra_host_gb_per_s = 10.0,
                                     .intra_host_latency_ms = 0.001,
                                     .devices_per_card = 1,
                                     .card_gb_per_s = 2.0,
                                     .inter_host_latency_ms = 0.03},
                    .hardware = "{}",
                    .min_world_size = 2,
                    .max_world_size = 16},
                   {.interconnect = {.name = "boxes",
                                     .devices_per_host = 4,
                                     .intra_host_gb_per_s = 100.0,
                                     .intra_host_latency_ms = 0.004,
                                     .devices_per_card = 2,
                                     .card_gb_per_s = 12.0,
                                     .inter_host_latency_ms = 0.01},
                    .hardware = "{}",
                    .min_world_size = 2,
                    .max_world_size = 16}};
  info.min_batch_size = 1024;
  info.max_batch_size = 65'536;
  info.data_sha256 = "ab";
  info.metrics = {{"mape", 0.5}};
  return info;
}

}  // namespace neuroshard::testing_networks
