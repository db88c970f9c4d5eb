// Inference of the communication network: bounds on the last end, mixed as the topology asks.
#include "neuroshard/cost/communication/neural_communication_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/link_schedule.h"
#include "neuroshard/cost/communication/ring_all_reduce.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

namespace {

/// Scratch memory of a prediction; one per thread, because a search asks millions of times.
struct Scratch {
  AllToAllEnds all_to_all;
  std::vector<double> starts;
  std::vector<double> ends;
};

Scratch& scratch_of_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

/// The weights of a network for one topology and its links, kept for a thread's next question.
struct KnownWeights {
  std::shared_ptr<const CommunicationNetwork> network;  ///< kept alive, so that no other is there
  Interconnect interconnect;
  int world_size = 0;
  int local_world_size = 0;
  MixtureWeights forward{};
  MixtureWeights backward{};
};

/// The rate of the memory of a cluster's devices: a model's file has the links alone.
double memory_of(const Interconnect& interconnect) {
  for (const Interconnect& preset : interconnects()) {
    if (preset.name == interconnect.name) return preset.memory_gb_per_s;
  }
  return interconnect.memory_gb_per_s;
}

}  // namespace

bool is_simulated(const TrainedCluster& cluster) {
  const Json hardware = parse_json(cluster.hardware, "hardware");
  const Json* kind = hardware.find("kind");
  return kind != nullptr && kind->text() != nullptr && *kind->text() == "simulated";
}

NeuralCommunicationModel::NeuralCommunicationModel(
    std::shared_ptr<const CommunicationNetwork> network, CommunicationModelInfo info,
    std::size_t cluster)
    : network_(std::move(network)), info_(std::move(info)), cluster_(cluster) {
  assert(cluster_ < info_.clusters.size());
  is_simulated_ = neuroshard::is_simulated(this->cluster());
  memory_gb_per_s_ = memory_of(this->cluster().interconnect);
}

bool NeuralCommunicationModel::is_known(const Topology& topology) const {
  return topology.world_size >= cluster().min_world_size &&
         topology.world_size <= cluster().max_world_size &&
         topology.local_world_size <= cluster().interconnect.devices_per_host;
}

const MixtureWeights& NeuralCommunicationModel::weights(const Topology& topology,
                                                        AllToAll direction) const {
  static thread_local KnownWeights known;
  if (known.network != network_ || !known.interconnect.has_links_of(cluster().interconnect) ||
      known.world_size != topology.world_size ||
      known.local_world_size != topology.local_world_size) {
    const auto of = [&](AllToAll way) {
      return mixture_weights(*network_,
                             communication_context(cluster().interconnect, topology, way));
    };
    known = {network_,
             cluster().interconnect,
             topology.world_size,
             topology.local_world_size,
             of(AllToAll::forward),
             of(AllToAll::backward)};
  }
  return direction == AllToAll::forward ? known.forward : known.backward;
}

void NeuralCommunicationModel::forward(const Topology& topology, std::int64_t batch_size,
                                       std::span<const double> columns,
                                       std::span<const double> start_ms,
                                       std::span<double> forward_ms) const {
  if (topology.world_size == 1) {
    forward_ms[0] = 0.0;
    return;
  }
  if (!is_known(topology)) {
    thread_link_schedule(cluster().interconnect, topology, batch_size)
        .ends(columns, start_ms, forward_ms);
    for (std::size_t d = 0; d < columns.size(); ++d) forward_ms[d] -= start_ms[d];
    return;
  }
  AllToAllEnds& ends = scratch_of_thread().all_to_all;
  thread_rendezvous_schedule(cluster().interconnect, topology, batch_size)
      .forward(columns, start_ms, ends);
  const double rest = mixed(ends, weights(topology, AllToAll::forward));
  for (std::size_t d = 0; d < columns.size(); ++d) {
    forward_ms[d] = ends.last_start_ms + ends.shares[d] * rest - start_ms[d];
  }
}

void NeuralCommunicationModel::backward(const Topology& topology, std::int64_t batch_size,
                                        std::span<const double> columns,
                                        std::span<double> backward_ms) const {
  if (topology.world_size == 1) {
    backward_ms[0] = 0.0;
    return;
  }
  AllToAllEnds& ends = scratch_of_thread().all_to_all;
  thread_rendezvous_schedule(cluster().interconnect, topology, batch_size).backward(columns, ends);
  const double rest = is_known(topology) ? mixed(ends, weights(topology, AllToAll::backward))
                                         : ends.rests_ms.front();
  for (std::size_t d = 0; d < columns.size(); ++d) backward_ms[d] = ends.shares[d] * rest;
}

double NeuralCommunicationModel::all_reduce_ms(const Topology& topology, double bytes) const {
  if (!knows_all_reduces()) return ring_all_reduce_ms(cluster().interconnect, topology, bytes);
  return cluster().collectives.all_reduce_ms(cluster().interconnect, topology, bytes);
}

double NeuralCommunicationModel::partial_sums_ms(double bytes) const {
  if (!knows_partial_sums()) return bytes / (memory_gb_per_s_ * 1e6);
  return cluster().collectives.partial_sums_ms(bytes);
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
  // These starts are too early, and so is the last end that follows: the schedule's last end never
  // falls when a device starts later. (A single end may: on a shared card, a device that starts
  // later lets the others end earlier, but never the card's last one.)
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
