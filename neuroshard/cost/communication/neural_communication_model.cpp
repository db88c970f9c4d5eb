// Inference of the communication network: the link schedule, and how much longer the all-to-all
// takes.
#include "neuroshard/cost/communication/neural_communication_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "neuroshard/cost/communication/communication_features.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

namespace {

/// Scratch memory of a prediction; one per thread, because a search asks millions of times.
struct Scratch {
  CommunicationFeatures features;
  CommunicationInference::Scratch network;
  std::vector<float> delays;
  std::vector<double> starts;
  std::vector<double> ends;
};

Scratch& scratch_of_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

}  // namespace

NeuralCommunicationModel::NeuralCommunicationModel(
    std::shared_ptr<const CommunicationNetwork> network, CommunicationModelInfo info,
    std::size_t cluster)
    : network_(std::move(network)),
      inference_(*network_),
      info_(std::move(info)),
      cluster_(cluster) {
  assert(cluster_ < info_.clusters.size());
  const Json hardware = parse_json(this->cluster().hardware, "hardware");
  const Json* kind = hardware.find("kind");
  is_simulated_ = kind != nullptr && kind->text() != nullptr && *kind->text() == "simulated";
}

bool NeuralCommunicationModel::is_known(const Topology& topology) const {
  return topology.world_size >= cluster().min_world_size &&
         topology.world_size <= cluster().max_world_size &&
         topology.local_world_size <= cluster().interconnect.devices_per_host;
}

void NeuralCommunicationModel::forward(const Topology& topology, std::int64_t batch_size,
                                       std::span<const double> columns,
                                       std::span<const double> start_ms,
                                       std::span<double> forward_ms) const {
  all_to_all(topology, batch_size, AllToAll::forward, columns, start_ms, forward_ms);
}

void NeuralCommunicationModel::backward(const Topology& topology, std::int64_t batch_size,
                                        std::span<const double> columns,
                                        std::span<double> backward_ms) const {
  static thread_local std::vector<double> together;
  together.assign(columns.size(), 0.0);
  all_to_all(topology, batch_size, AllToAll::backward, columns, together, backward_ms);
}

void NeuralCommunicationModel::all_to_all(const Topology& topology, std::int64_t batch_size,
                                          AllToAll direction, std::span<const double> columns,
                                          std::span<const double> start_ms,
                                          std::span<double> times_ms) const {
  if (topology.world_size == 1) {
    times_ms[0] = 0.0;
    return;
  }
  Scratch& scratch = scratch_of_thread();
  LinkSchedule& schedule = thread_link_schedule(cluster().interconnect, topology, batch_size);
  communication_features(schedule, direction, columns, start_ms, scratch.features);
  const double last = scratch.features.last_start_ms;
  const bool known = is_known(topology);
  scratch.delays.resize(columns.size());
  if (known) {
    const Eigen::MatrixXf& values = scratch.features.values;
    inference_.run({values.data(), static_cast<std::size_t>(values.size())}, scratch.delays,
                   scratch.network);
  }
  for (std::size_t d = 0; d < columns.size(); ++d) {
    const double rest = std::max(scratch.features.ends_ms[d] - last, 0.0);
    const double factor =
        known ? 1.0 + std::exp(static_cast<double>(std::min(scratch.delays[d], kLargestDelay)))
              : 1.0;
    times_ms[d] = last + rest * factor - start_ms[d];
  }
}

double NeuralCommunicationModel::floor_ms(const Topology& topology, std::int64_t batch_size,
                                          double columns) const {
  return 2.0 * own_messages_ms(cluster().interconnect, topology, batch_size, columns);
}

double NeuralCommunicationModel::least_cost_ms(const Topology& topology, std::int64_t batch_size,
                                               std::span<const double> compute_ms,
                                               std::span<const double> columns) const {
  const std::size_t world_size = columns.size();
  assert(compute_ms.size() == world_size);
  if (world_size == 1) return compute_ms[0];
  LinkSchedule& schedule = thread_link_schedule(cluster().interconnect, topology, batch_size);
  std::vector<double>& starts = scratch_of_thread().starts;
  std::vector<double>& ends = scratch_of_thread().ends;
  starts.assign(world_size, 0.0);
  ends.resize(world_size);
  schedule.ends(columns, starts, ends);
  for (std::size_t d = 0; d < world_size; ++d) starts[d] = ends[d] + compute_ms[d];
  // These starts are too early, and so is the last end that follows. (A single end need not be: on
  // a shared card, a device that starts later lets the others end earlier, but never the card's
  // last one.)
  schedule.ends(columns, starts, ends);
  return *std::max_element(ends.begin(), ends.end());
}

std::vector<std::string> NeuralCommunicationModel::outside_range(const Task& task) const {
  const Topology& topology = task.topology;
  if (topology.world_size == 1) return {};
  std::vector<std::string> reasons;
  const std::string formula = "; costs are by the links' rates alone";
  if (topology.world_size < cluster().min_world_size ||
      topology.world_size > cluster().max_world_size) {
    reasons.push_back(fmt::format("world_size: \"{}\" was trained on {} to {}, got {}{}",
                                  cluster().interconnect.name, cluster().min_world_size,
                                  cluster().max_world_size, topology.world_size, formula));
  }
  if (topology.local_world_size > cluster().interconnect.devices_per_host) {
    reasons.push_back(fmt::format(
        "local_world_size: \"{}\" was trained on at most {}, got {}{}", cluster().interconnect.name,
        cluster().interconnect.devices_per_host, topology.local_world_size, formula));
  }
  if (task.batch_size < info_.min_batch_size || task.batch_size > info_.max_batch_size) {
    reasons.push_back(fmt::format("batch_size: trained on {} to {}, got {}", info_.min_batch_size,
                                  info_.max_batch_size, task.batch_size));
  }
  return reasons;
}

}  // namespace neuroshard
