// When all-to-alls end if a message waits until both its devices have entered: the bounds on the
// last end that the learned communication model mixes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/cost/communication/link_schedule.h"

namespace neuroshard {

/// Links this many times as slow as the interconnect's, latencies included.
inline constexpr std::array<double, 3> kSlowdowns{1.0, 2.0, 8.0};
/// The ends of RendezvousSchedule: one for each slowdown, then that of devices that do nothing
/// until all have entered.
inline constexpr std::size_t kNumLastEnds = kSlowdowns.size() + 1;

/// An all-to-all as the schedule sees it.
struct AllToAllEnds {
  double last_start_ms = 0.0;  ///< no device ends before it
  /// From the last start to the last device's end, in the order of kNumLastEnds.
  std::array<double, kNumLastEnds> rests_ms{};
  /// Of that time, the part that each device takes until its own end: 0 to 1, the largest is 1.
  std::vector<double> shares;
};

/// The message from d to e cannot begin before both have entered (the rendezvous protocol, which
/// large messages take). A link that its messages keep busy from time t on cannot end before
///
///   t + the time that all messages take which enter at t or later,
///
/// and the schedule's last end is the latest of these bounds over all links (of every device in its
/// host, of every card), both directions and all t; plus the latency. Unlike a device's own end, it
/// never falls when a message grows or enters later, whatever the topology. It is at least the last
/// end of LinkSchedule, which lets early devices send to late ones, and at most last start + the
/// longest time of any link; without lags these three are the same.
///
/// Shares follow the devices' own links and how the messages of the slowest sender share its link;
/// on shared cards, LinkSchedule. They are no bounds, and the last end does not depend on them.
class RendezvousSchedule {
 public:
  /// As LinkSchedule.
  RendezvousSchedule(const Interconnect& interconnect, const Topology& topology,
                     std::int64_t batch_size, std::int64_t bytes_per_element = 4);

  /// The same topology, batch and links, without rendezvous.
  [[nodiscard]] LinkSchedule& links() { return links_; }

  /// Spans have world_size elements; start_ms in any clock. Where an argument is no finite number,
  /// no result is: all are NaN. O(W log W) for alike lags, at worst O(W^2); no allocation once
  /// `ends` has been used.
  void forward(std::span<const double> columns, std::span<const double> start_ms,
               AllToAllEnds& ends);

  /// All enter at 0. rests_ms[k] is the largest end of LinkSchedule times slowdown k (the last one
  /// times 1), and shares are proportional to its ends: so no device's end falls when columns are
  /// added to any.
  void backward(std::span<const double> columns, AllToAllEnds& ends);

 private:
  /// One level of links: those in the hosts, or the cards between them.
  struct Level {
    bool in_host = false;
    int peers = 0;  ///< that each device exchanges with
    double ms_per_column = 0.0;
    double latency_ms = 0.0;
  };
  /// The two directions of a device's link or of a card. The last four are of an all-to-all.
  struct Link {
    int level = 0;
    int first = 0, last = 0;  ///< its devices: [first, last)
    int host = 0;
    double columns = 0.0;         ///< of its devices
    double peer_columns = 0.0;    ///< of the devices that each of them exchanges with
    double full_ms = 0.0;         ///< all its messages in the longer direction, and latency
    double first_start_ms = 0.0;  ///< of its devices
  };

  void add_level(const Level& level, int devices_per_link);
  [[nodiscard]] std::span<const int> order_of_host(int host) const {
    return std::span<const int>(host_order_).subspan(host * per_host_, per_host_);
  }
  /// All devices, and those of each host, as they start.
  void sort_devices(std::span<const double> start_ms);
  void load_links(std::span<const double> columns, std::span<const double> start_ms);
  void find_last_ends(std::span<const double> columns, std::span<const double> start_ms);
  /// The bounds of one link.
  void sweep(const Link& link, std::span<const double> columns, std::span<const double> start_ms);
  [[nodiscard]] bool may_raise(double start_ms, double work_ms) const;
  void raise(double start_ms, double work_ms);

  void find_device_ends(std::span<const double> columns, std::span<const double> start_ms);
  /// The messages of the slowest sender of each host.
  void follow_in_hosts(const Level& level, std::span<const double> columns,
                       std::span<const double> start_ms);
  /// The messages of the slowest sender of all, and of the slowest that its own host waits for.
  void follow_between_hosts(const Level& level, std::span<const double> columns,
                            std::span<const double> start_ms);
  /// The sender, of those given as they start, that sends until last, as far as its full time and
  /// its message to the last to start tell; none of host `except_host`.
  [[nodiscard]] int slowest_sender(const Level& level, std::span<const int> senders,
                                   int except_host, std::span<const double> columns,
                                   std::span<const double> start_ms) const;
  /// Raises the ends of a sender and its peers to when its messages to them, which share its link,
  /// end.
  void follow_messages(const Level& level, int sender, std::span<const double> columns,
                       std::span<const double> start_ms);

  LinkSchedule links_;
  int world_size_;
  int per_host_;
  bool shared_cards_ = false;
  std::vector<Level> levels_;
  std::vector<Link> all_links_;  ///< of the first level, then of the second
  std::array<double, kSlowdowns.size()> last_ends_{};
  double longest_link_ms_ = 0.0;
  std::vector<std::pair<double, int>> starts_;  ///< devices as they start
  std::vector<int> order_;                      ///< the same, without their starts
  std::vector<int> host_order_;                 ///< one host's after another's, each as they start
  std::vector<int> next_in_host_;
  std::vector<double> host_columns_;
  std::vector<double> ends_;  ///< of the devices, without any slowdown
  std::vector<int> receivers_;
  std::vector<double> entered_at_;  ///< of the receivers' messages, as work done until then [ms]
};

/// This thread's schedule for these arguments, as thread_link_schedule.
[[nodiscard]] RendezvousSchedule& thread_rendezvous_schedule(const Interconnect& interconnect,
                                                             const Topology& topology,
                                                             std::int64_t batch_size);

}  // namespace neuroshard
