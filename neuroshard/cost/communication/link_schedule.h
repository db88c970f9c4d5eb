// When the all-to-alls of a plan end if nothing but the links' rates held them up: the physical
// skeleton of the communication cost model.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// Rates and latencies of a cluster whose switches never block; rates are what large messages
/// reach, each way, in 1e9 bytes per second.
struct ClusterNetwork {
  double intra_host_gb_per_s = 0.0;  ///< of a device to the others of its host
  double intra_host_latency_ms = 0.0;
  double inter_host_gb_per_s = 0.0;  ///< of a network card
  double inter_host_latency_ms = 0.0;
  int devices_per_card = 1;  ///< consecutive devices of a host share a card

  friend bool operator==(const ClusterNetwork&, const ClusterNetwork&) = default;
};

/// A device's all-to-all ends when the last of its messages has arrived. Device d enters at
/// start[d]; with u = bytes of one column for one peer, all its messages share its links, so
///
///   forward:   what d sends leaves at rate R in u * columns[d] * peers / R, and all its messages
///              end together; so d ends with its own sending, with the slowest sender to it, and
///              not before all that it receives is through its own link;
///   backward:  the message to a device of many columns is a large one, and all messages to it end
///              together; so d ends with the slowest receiver among its peers, with its own
///              receiving, and not before all that it sends is through: the same ends.
///
/// Both levels, in the host and between hosts, run at the same time. Devices on one card share it
/// evenly: the ends of its messages follow from processor sharing of the flows as they arrive.
/// Exact for one level of network without lags, and a bound with them (messages of early devices
/// may wait for late ones, which here they do not).
class LinkSchedule {
 public:
  LinkSchedule(const ClusterNetwork& network, const Topology& topology, std::int64_t batch_size,
               std::int64_t bytes_per_element = 4);

  /// Whether this is what the constructor would make of these.
  [[nodiscard]] bool is_of(const ClusterNetwork& network, const Topology& topology,
                           std::int64_t batch_size, std::int64_t bytes_per_element = 4) const;

  /// ends_ms[d] in the clock of start_ms; all spans have world_size elements. O(W log W).
  void ends(std::span<const double> columns, std::span<const double> start_ms,
            std::span<double> ends_ms);

  /// Of the latest call: each device's time on its own links [ms], as the schedule sees it.
  struct Loads {
    double intra_send_ms = 0.0, intra_receive_ms = 0.0;
    double card_send_ms = 0.0, card_receive_ms = 0.0;  ///< of the device's own messages
  };
  [[nodiscard]] std::span<const Loads> loads() const { return loads_; }

  [[nodiscard]] const ClusterNetwork& network() const { return network_; }
  [[nodiscard]] int devices_per_host() const { return per_host_; }
  /// Of the slowest level that there is.
  [[nodiscard]] double latency_ms() const {
    return std::max(per_host_ > 1 ? network_.intra_host_latency_ms : 0.0,
                    world_size_ > per_host_ ? network_.inter_host_latency_ms : 0.0);
  }

 private:
  /// The largest value of each host's devices, and the largest of all other hosts'.
  class HostMaxima;

  void compute_loads(std::span<const double> columns);
  /// ends[d] of flows that share their card, device d's taking `work(d)` alone.
  template <typename Work>
  void share_cards(std::span<const double> start_ms, const Work& work, std::vector<double>& ends);

  ClusterNetwork network_;
  int world_size_;
  int per_host_;
  std::int64_t batch_bytes_;  ///< of one column
  double intra_ms_per_column_;
  double inter_ms_per_column_;
  std::vector<Loads> loads_;
  std::vector<double> card_send_ends_;
  std::vector<double> card_receive_ends_;
  std::array<std::vector<double>, 3> host_maxima_;  ///< room for HostMaxima
};

}  // namespace neuroshard
