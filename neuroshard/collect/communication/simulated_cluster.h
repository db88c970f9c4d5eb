// Clusters for the network simulator: presets, or a user's own SimGrid platform file.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// Hosts of several devices. In a host, each device has a link up to and one down from a switch
/// that never blocks. Between hosts, traffic passes network cards, each with a link up and one
/// down, and a fabric that never blocks.
struct SimulatedCluster {
  std::string_view name;
  int devices_per_host = 1;
  double intra_host_gb_per_s = 0.0;  ///< of a device, each way; 1e9 bytes per second
  double intra_host_latency_ms = 0.0;
  int devices_per_card = 1;    ///< share a network card
  double card_gb_per_s = 0.0;  ///< line rate each way
  double inter_host_latency_ms = 0.0;
  double intra_host_share = 1.0;  ///< of the rate that large messages reach
  double card_share = 1.0;        ///< likewise
  std::string_view source;        ///< of the numbers
};

[[nodiscard]] std::span<const SimulatedCluster> simulated_clusters();
/// Throws InputError for a name that is none of theirs.
[[nodiscard]] const SimulatedCluster& find_simulated_cluster(std::string_view name);

}  // namespace neuroshard
