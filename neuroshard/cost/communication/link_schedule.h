// When the all-to-alls of a plan end if the links' rates are the only limit: the physical part of
// the communication cost model.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

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
/// Exact for one level of links without lags, and a bound with them (in reality messages of early
/// devices may wait for late ones).
class LinkSchedule {
 public:
  /// `interconnect` must be valid.
  LinkSchedule(const Interconnect& interconnect, const Topology& topology, std::int64_t batch_size,
               std::int64_t bytes_per_element = 4);

  /// Whether the constructor would make the same schedule from these; the interconnect's name does
  /// not matter.
  [[nodiscard]] bool is_of(const Interconnect& interconnect, const Topology& topology,
                           std::int64_t batch_size, std::int64_t bytes_per_element = 4) const;

  /// ends_ms[d] in the clock of start_ms; all spans have world_size elements. O(W log W), no
  /// allocation. Where an argument is no finite number, no end is: all are NaN.
  void ends(std::span<const double> columns, std::span<const double> start_ms,
            std::span<double> ends_ms);

  /// Of the latest call: each device's time on its own links [ms], as the schedule sees it.
  struct Loads {
    double intra_send_ms = 0.0, intra_receive_ms = 0.0;
    double card_send_ms = 0.0, card_receive_ms = 0.0;  ///< of the device's own messages
  };
  [[nodiscard]] std::span<const Loads> loads() const { return loads_; }

  [[nodiscard]] const Interconnect& interconnect() const { return interconnect_; }
  [[nodiscard]] int devices_per_host() const { return per_host_; }
  /// What one column takes for one peer, latency aside [ms].
  [[nodiscard]] double intra_host_ms_per_column() const { return intra_ms_per_column_; }
  [[nodiscard]] double inter_host_ms_per_column() const { return inter_ms_per_column_; }
  /// Of the slowest level that there is.
  [[nodiscard]] double latency_ms() const {
    return std::max(per_host_ > 1 ? interconnect_.intra_host_latency_ms : 0.0,
                    world_size_ > per_host_ ? interconnect_.inter_host_latency_ms : 0.0);
  }

 private:
  /// The largest value of each host's devices, and the largest of all other hosts'.
  class HostMaxima;

  void compute_loads(std::span<const double> columns);
  /// ends[d] of flows that share their card, device d's taking `work(d)` alone.
  template <typename Work>
  void share_cards(std::span<const double> start_ms, const Work& work, std::vector<double>& ends);
  /// The same for the card of devices [first, last).
  template <typename Work>
  void share_card(int first, int last, std::span<const double> start_ms, const Work& work,
                  std::vector<double>& ends);

  Interconnect interconnect_;
  int world_size_;
  int per_host_;
  std::int64_t batch_bytes_;  ///< of one column
  double intra_ms_per_column_;
  double inter_ms_per_column_;
  std::vector<Loads> loads_;
  std::vector<double> card_send_ends_;
  std::vector<double> card_receive_ends_;
  std::array<std::vector<double>, 3> host_maxima_;  ///< room for HostMaxima
  std::vector<int> arrivals_;                       ///< of a card: its devices as they start
  std::vector<int> active_;                         ///< of a card: devices that are sending
  std::vector<double> left_ms_;  ///< remaining work of each device, as time alone on the card
};

/// This thread's schedule for these arguments, made anew if the last call had others: a search asks
/// millions of times, and threads share models. Valid until the thread's next call.
[[nodiscard]] LinkSchedule& thread_link_schedule(const Interconnect& interconnect,
                                                 const Topology& topology, std::int64_t batch_size);

/// How long a device's own fp32 messages take on its links if they have those to themselves [ms],
/// latency included; 0 for a device alone. No end of LinkSchedule is less than this after the
/// device's start, whatever the others hold and whenever they start. Convex in `columns`, and never
/// falling.
[[nodiscard]] double own_messages_ms(const Interconnect& interconnect, const Topology& topology,
                                     std::int64_t batch_size, double columns);

}  // namespace neuroshard
