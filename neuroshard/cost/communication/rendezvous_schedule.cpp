// Busy links, and the messages of the slowest sender.
#include "neuroshard/cost/communication/rendezvous_schedule.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "neuroshard/core/interconnect.h"

namespace neuroshard {

namespace {

/// Insertion sort, which leaves off, with the values in some order, where it takes many moves.
bool sorted_in_few_moves(std::vector<std::pair<double, int>>& values) {
  std::size_t moves_left = 4 * values.size();
  for (std::size_t i = 1; i < values.size(); ++i) {
    for (std::size_t at = i; at > 0 && values[at] < values[at - 1]; --at) {
      if (moves_left-- == 0) return false;
      std::swap(values[at], values[at - 1]);
    }
  }
  return true;
}

}  // namespace

RendezvousSchedule::RendezvousSchedule(const Interconnect& interconnect, const Topology& topology,
                                       std::int64_t batch_size, std::int64_t bytes_per_element)
    : links_(interconnect, topology, batch_size, bytes_per_element),
      world_size_(topology.world_size),
      per_host_(topology.local_world_size),
      starts_(world_size_),
      order_(world_size_),
      host_order_(world_size_),
      next_in_host_(world_size_ / per_host_),
      host_columns_(world_size_ / per_host_),
      ends_(world_size_),
      entered_at_(world_size_) {
  std::iota(order_.begin(), order_.end(), 0);
  // The slower level first: its ends are the later ones, which spares work on the other.
  if (world_size_ > per_host_) {
    const int on_card = std::min(interconnect.devices_per_card, per_host_);
    shared_cards_ = on_card > 1;
    add_level({.in_host = false,
               .peers = world_size_ - per_host_,
               .ms_per_column = links_.inter_host_ms_per_column(),
               .latency_ms = interconnect.inter_host_latency_ms},
              on_card);
  }
  if (per_host_ > 1) {
    add_level({.in_host = true,
               .peers = per_host_ - 1,
               .ms_per_column = links_.intra_host_ms_per_column(),
               .latency_ms = interconnect.intra_host_latency_ms},
              1);
  }
}

void RendezvousSchedule::add_level(const Level& level, int devices_per_link) {
  for (int host = 0; host < world_size_ / per_host_; ++host) {
    const int end = (host + 1) * per_host_;
    for (int first = host * per_host_; first < end; first += devices_per_link) {
      all_links_.push_back({.level = static_cast<int>(levels_.size()),
                            .first = first,
                            .last = std::min(first + devices_per_link, end),
                            .host = host});
    }
  }
  levels_.push_back(level);
}

void RendezvousSchedule::sort_devices(std::span<const double> start_ms) {
  // In the order of the last call: a search changes the starts of few devices at a time.
  for (int i = 0; i < world_size_; ++i) starts_[i] = {start_ms[order_[i]], order_[i]};
  if (!sorted_in_few_moves(starts_)) std::sort(starts_.begin(), starts_.end());
  for (int i = 0; i < world_size_; ++i) order_[i] = starts_[i].second;
  if (per_host_ == 1) return;
  for (std::size_t host = 0; host < next_in_host_.size(); ++host) {
    next_in_host_[host] = static_cast<int>(host) * per_host_;
  }
  for (const int d : order_) host_order_[next_in_host_[d / per_host_]++] = d;
}

void RendezvousSchedule::load_links(std::span<const double> columns,
                                    std::span<const double> start_ms) {
  double all_columns = 0.0;
  for (std::size_t host = 0; host < host_columns_.size(); ++host) {
    const auto own = columns.subspan(host * per_host_, per_host_);
    host_columns_[host] = std::accumulate(own.begin(), own.end(), 0.0);
    all_columns += host_columns_[host];
  }
  longest_link_ms_ = 0.0;
  for (Link& link : all_links_) {
    const Level& level = levels_[link.level];
    link.columns = columns[link.first];
    link.first_start_ms = start_ms[link.first];
    for (int d = link.first + 1; d < link.last; ++d) {
      link.columns += columns[d];
      link.first_start_ms = std::min(link.first_start_ms, start_ms[d]);
    }
    const double in_host = host_columns_[link.host];
    link.peer_columns = level.in_host ? in_host - link.columns : all_columns - in_host;
    const double sent = link.columns * level.peers;
    const double received = link.peer_columns * (link.last - link.first);
    link.full_ms = std::max(sent, received) * level.ms_per_column + level.latency_ms;
    longest_link_ms_ = std::max(longest_link_ms_, link.full_ms);
  }
}

bool RendezvousSchedule::may_raise(double start_ms, double work_ms) const {
  for (std::size_t k = 0; k < kSlowdowns.size(); ++k) {
    if (start_ms + kSlowdowns[k] * work_ms > last_ends_[k]) return true;
  }
  return false;
}

void RendezvousSchedule::raise(double start_ms, double work_ms) {
  for (std::size_t k = 0; k < kSlowdowns.size(); ++k) {
    last_ends_[k] = std::max(last_ends_[k], start_ms + kSlowdowns[k] * work_ms);
  }
}

void RendezvousSchedule::sweep(const Link& link, std::span<const double> columns,
                               std::span<const double> start_ms) {
  const Level& level = levels_[link.level];
  const std::span<const int> order = level.in_host ? order_of_host(link.host) : order_;
  const int host_first = link.host * per_host_;
  const int host_last = host_first + per_host_;
  const int devices = link.last - link.first;
  // Of the link's devices and of their peers, those that enter at the time in question or later.
  double late_columns = 0.0;
  double late_peer_columns = 0.0;
  int late = 0;
  int late_peers = 0;
  for (std::size_t i = order.size(); i-- > 0;) {
    const int d = order[i];
    const double start = start_ms[d];
    if (!may_raise(start, link.full_ms)) return;  // earlier times have no more work than that
    if (d >= link.first && d < link.last) {
      late_columns += columns[d];
      ++late;
    } else if (level.in_host || d < host_first || d >= host_last) {
      late_peer_columns += columns[d];
      ++late_peers;
    } else {
      continue;
    }
    const double sent = late_columns * level.peers + (link.columns - late_columns) * late_peers;
    const double received = late * link.peer_columns + (devices - late) * late_peer_columns;
    raise(start, std::max(sent, received) * level.ms_per_column + level.latency_ms);
  }
}

void RendezvousSchedule::find_last_ends(std::span<const double> columns,
                                        std::span<const double> start_ms) {
  const double last_start = start_ms[order_.back()];
  last_ends_.fill(last_start);
  raise(last_start, links_.latency_ms());
  for (const Link& link : all_links_) raise(link.first_start_ms, link.full_ms);
  for (const Link& link : all_links_) {
    if (may_raise(last_start, link.full_ms)) sweep(link, columns, start_ms);
  }
}

int RendezvousSchedule::slowest_sender(const Level& level, std::span<const int> senders,
                                       int except_host, std::span<const double> columns,
                                       std::span<const double> start_ms) const {
  const double last_start = start_ms[senders.back()];
  int slowest = -1;
  double latest = 0.0;
  for (const int d : senders) {
    if (d / per_host_ == except_host) continue;
    const double message_ms = columns[d] * level.ms_per_column;
    const double end = std::max(start_ms[d] + level.peers * message_ms, last_start + message_ms);
    if (slowest < 0 || end > latest) {
      slowest = d;
      latest = end;
    }
  }
  return slowest;
}

void RendezvousSchedule::follow_messages(const Level& level, int sender,
                                         std::span<const double> columns,
                                         std::span<const double> start_ms) {
  const int host_first = sender / per_host_ * per_host_;
  const std::span<const int> order = level.in_host ? order_of_host(sender / per_host_) : order_;
  receivers_.clear();
  for (const int d : order) {
    const bool is_peer =
        level.in_host ? d != sender : d < host_first || d >= host_first + per_host_;
    if (is_peer) receivers_.push_back(d);
  }
  const double work_ms = columns[sender] * level.ms_per_column;
  const auto enters = [&](std::size_t i) {
    return std::max(start_ms[receivers_[i]], start_ms[sender]);
  };
  // Messages of one size that share a link end in the order in which they entered, each when the
  // work done for every message that is under way has grown by its own.
  double now = 0.0;
  double done_ms = 0.0;
  std::size_t entered = 0;
  for (std::size_t ended = 0; ended < receivers_.size();) {
    if (entered == ended) now = enters(entered);
    while (entered < receivers_.size() && enters(entered) <= now) entered_at_[entered++] = done_ms;
    const auto under_way = static_cast<double>(entered - ended);
    const double end = now + (entered_at_[ended] + work_ms - done_ms) * under_way;
    if (entered < receivers_.size() && enters(entered) < end) {
      done_ms += (enters(entered) - now) / under_way;
      now = enters(entered);
      continue;
    }
    now = std::max(now, end);
    done_ms = entered_at_[ended] + work_ms;
    do {
      double& receiver_end = ends_[receivers_[ended]];
      receiver_end = std::max(receiver_end, now + level.latency_ms);
      ++ended;
    } while (ended < entered && entered_at_[ended] + work_ms <= done_ms);
  }
  ends_[sender] = std::max(ends_[sender], now + level.latency_ms);
}

void RendezvousSchedule::follow_in_hosts(const Level& level, std::span<const double> columns,
                                         std::span<const double> start_ms) {
  for (int host = 0; host < world_size_ / per_host_; ++host) {
    const std::span<const int> devices = order_of_host(host);
    const auto own_ends = std::span<const double>(ends_).subspan(host * per_host_, per_host_);
    const auto own_columns = columns.subspan(host * per_host_, per_host_);
    const double longest_ms = *std::max_element(own_columns.begin(), own_columns.end()) *
                                  level.peers * level.ms_per_column +
                              level.latency_ms;
    // Between hosts it mostly takes longer.
    if (start_ms[devices.back()] + longest_ms <=
        *std::min_element(own_ends.begin(), own_ends.end())) {
      continue;
    }
    follow_messages(level, slowest_sender(level, devices, -1, columns, start_ms), columns,
                    start_ms);
  }
}

void RendezvousSchedule::follow_between_hosts(const Level& level, std::span<const double> columns,
                                              std::span<const double> start_ms) {
  const int first = slowest_sender(level, order_, -1, columns, start_ms);
  const int second = slowest_sender(level, order_, first / per_host_, columns, start_ms);
  follow_messages(level, first, columns, start_ms);
  follow_messages(level, second, columns, start_ms);
}

void RendezvousSchedule::find_device_ends(std::span<const double> columns,
                                          std::span<const double> start_ms) {
  std::fill(ends_.begin(), ends_.end(), start_ms[order_.back()]);
  for (const Link& link : all_links_) {
    ends_[link.first] = std::max(ends_[link.first], link.first_start_ms + link.full_ms);
  }
  for (const Level& level : levels_) {
    if (level.in_host) {
      follow_in_hosts(level, columns, start_ms);
    } else {
      follow_between_hosts(level, columns, start_ms);
    }
  }
}

void RendezvousSchedule::forward(std::span<const double> columns, std::span<const double> start_ms,
                                 AllToAllEnds& ends) {
  assert(columns.size() == ends_.size() && start_ms.size() == ends_.size());
  ends.shares.resize(ends_.size());
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(columns.begin(), columns.end(), finite) ||
      !std::all_of(start_ms.begin(), start_ms.end(), finite)) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    ends.last_start_ms = kNan;
    ends.rests_ms.fill(kNan);
    std::fill(ends.shares.begin(), ends.shares.end(), kNan);
    return;
  }
  sort_devices(start_ms);
  load_links(columns, start_ms);
  find_last_ends(columns, start_ms);
  const double last_start = start_ms[order_.back()];
  ends.last_start_ms = last_start;
  for (std::size_t k = 0; k < kSlowdowns.size(); ++k) {
    ends.rests_ms[k] = last_ends_[k] - last_start;
  }
  ends.rests_ms.back() = longest_link_ms_;
  if (shared_cards_) {
    links_.ends(columns, start_ms, ends_);
  } else {
    find_device_ends(columns, start_ms);
  }
  const double rest = *std::max_element(ends_.begin(), ends_.end()) - last_start;
  for (std::size_t d = 0; d < ends_.size(); ++d) {
    ends.shares[d] = rest > 0.0 ? (ends_[d] - last_start) / rest : 1.0;
  }
}

void RendezvousSchedule::backward(std::span<const double> columns, AllToAllEnds& ends) {
  assert(columns.size() == ends_.size());
  static thread_local std::vector<double> together;
  together.assign(columns.size(), 0.0);
  links_.ends(columns, together, ends_);
  const double last = *std::max_element(ends_.begin(), ends_.end());
  ends.last_start_ms = 0.0;
  for (std::size_t k = 0; k < kSlowdowns.size(); ++k) ends.rests_ms[k] = kSlowdowns[k] * last;
  ends.rests_ms.back() = last;
  ends.shares.resize(ends_.size());
  for (std::size_t d = 0; d < ends_.size(); ++d) {
    ends.shares[d] = last > 0.0 ? ends_[d] / last : 1.0;
  }
}

RendezvousSchedule& thread_rendezvous_schedule(const Interconnect& interconnect,
                                               const Topology& topology, std::int64_t batch_size) {
  static thread_local std::optional<RendezvousSchedule> schedule;
  if (!schedule || !schedule->links().is_of(interconnect, topology, batch_size)) {
    schedule.emplace(interconnect, topology, batch_size);
  }
  return *schedule;
}

}  // namespace neuroshard
