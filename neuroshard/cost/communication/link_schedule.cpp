// Sends, receives and shared cards.
#include "neuroshard/cost/communication/link_schedule.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace neuroshard {

/// Of one value per device: the largest among a device's own host (itself included), and among all
/// other hosts.
class LinkSchedule::HostMaxima {
 public:
  template <typename Value>
  HostMaxima(int world_size, int per_host, std::vector<double>& room, const Value& value)
      : per_host_(per_host), hosts_(room) {
    hosts_.clear();
    for (int host = 0; host * per_host < world_size; ++host) {
      double largest = -std::numeric_limits<double>::infinity();
      for (int d = host * per_host; d < (host + 1) * per_host; ++d) {
        largest = std::max(largest, value(d));
      }
      hosts_.push_back(largest);
      if (first_ < 0 || largest > hosts_[first_]) {
        second_ = first_;
        first_ = host;
      } else if (second_ < 0 || largest > hosts_[second_]) {
        second_ = host;
      }
    }
  }
  [[nodiscard]] double own(int device) const { return hosts_[device / per_host_]; }
  /// There must be other hosts.
  [[nodiscard]] double others(int device) const {
    return hosts_[device / per_host_ == first_ ? second_ : first_];
  }

 private:
  int per_host_;
  std::vector<double>& hosts_;
  int first_ = -1;
  int second_ = -1;
};

LinkSchedule::LinkSchedule(const Interconnect& interconnect, const Topology& topology,
                           std::int64_t batch_size, std::int64_t bytes_per_element)
    : interconnect_(interconnect),
      world_size_(topology.world_size),
      per_host_(topology.local_world_size),
      batch_bytes_(bytes_per_element * batch_size),
      loads_(world_size_),
      card_send_ends_(world_size_),
      card_receive_ends_(world_size_),
      left_ms_(world_size_) {
  const double bytes = static_cast<double>(batch_bytes_) / world_size_;
  intra_ms_per_column_ = bytes / (interconnect.effective_intra_host_gb_per_s() * 1e6);
  inter_ms_per_column_ = bytes / (interconnect.effective_card_gb_per_s() * 1e6);
}

bool LinkSchedule::is_of(const Interconnect& interconnect, const Topology& topology,
                         std::int64_t batch_size, std::int64_t bytes_per_element) const {
  return topology.world_size == world_size_ && topology.local_world_size == per_host_ &&
         bytes_per_element * batch_size == batch_bytes_ && interconnect.has_links_of(interconnect_);
}

void LinkSchedule::compute_loads(std::span<const double> columns) {
  assert(columns.size() == static_cast<std::size_t>(world_size_));
  const double all = std::accumulate(columns.begin(), columns.end(), 0.0);
  for (int host = 0; host < world_size_; host += per_host_) {
    const auto own = columns.subspan(host, per_host_);
    const double in_host = std::accumulate(own.begin(), own.end(), 0.0);
    for (int d = host; d < host + per_host_; ++d) {
      loads_[d] = {columns[d] * (per_host_ - 1) * intra_ms_per_column_,
                   (in_host - columns[d]) * intra_ms_per_column_,
                   columns[d] * (world_size_ - per_host_) * inter_ms_per_column_,
                   (all - in_host) * inter_ms_per_column_};
    }
  }
}

template <typename Work>
void LinkSchedule::share_card(int first, int last, std::span<const double> start_ms,
                              const Work& work, std::vector<double>& ends) {
  arrivals_.resize(last - first);
  std::iota(arrivals_.begin(), arrivals_.end(), first);
  std::sort(arrivals_.begin(), arrivals_.end(), [&](int a, int b) {
    return start_ms[a] != start_ms[b] ? start_ms[a] < start_ms[b] : a < b;
  });
  active_.clear();
  double now = start_ms[arrivals_.front()];
  for (std::size_t arrived = 0; arrived < arrivals_.size() || !active_.empty();) {
    while (arrived < arrivals_.size() && start_ms[arrivals_[arrived]] <= now) {
      const int d = arrivals_[arrived++];
      left_ms_[d] = work(d);
      ends[d] = start_ms[d];
      if (left_ms_[d] > 0.0) active_.push_back(d);
    }
    const double next = arrived < arrivals_.size() ? start_ms[arrivals_[arrived]]
                                                   : std::numeric_limits<double>::infinity();
    if (active_.empty()) {
      if (arrived < arrivals_.size()) now = next;
      continue;
    }
    const auto flows = static_cast<double>(active_.size());
    const int shortest = *std::min_element(active_.begin(), active_.end(),
                                           [&](int a, int b) { return left_ms_[a] < left_ms_[b]; });
    const double step = std::min(left_ms_[shortest] * flows, next - now);
    const bool ended = left_ms_[shortest] * flows <= next - now;
    const double done = ended ? left_ms_[shortest] : step / flows;
    now = ended ? now + step : next;
    std::erase_if(active_, [&](int d) {
      left_ms_[d] -= done;
      if (left_ms_[d] > 0.0) return false;
      ends[d] = now;
      return true;
    });
  }
}

template <typename Work>
void LinkSchedule::share_cards(std::span<const double> start_ms, const Work& work,
                               std::vector<double>& ends) {
  const int on_card = std::min(interconnect_.devices_per_card, per_host_);
  if (on_card == 1) {
    for (int d = 0; d < world_size_; ++d) ends[d] = start_ms[d] + work(d);
    return;
  }
  for (int host = 0; host < world_size_; host += per_host_) {
    for (int first = host; first < host + per_host_; first += on_card) {
      share_card(first, std::min(first + on_card, host + per_host_), start_ms, work, ends);
    }
  }
}

void LinkSchedule::ends(std::span<const double> columns, std::span<const double> start_ms,
                        std::span<double> ends_ms) {
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(columns.begin(), columns.end(), finite) ||
      !std::all_of(start_ms.begin(), start_ms.end(), finite)) {
    // Nothing follows a device that never starts: waiting for it would not end.
    std::fill(ends_ms.begin(), ends_ms.end(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  compute_loads(columns);
  share_cards(
      start_ms, [&](int d) { return loads_[d].card_send_ms; }, card_send_ends_);
  share_cards(
      start_ms, [&](int d) { return loads_[d].card_receive_ms; }, card_receive_ends_);
  const bool has_intra = per_host_ > 1;
  const bool has_inter = world_size_ > per_host_;
  const HostMaxima senders(world_size_, per_host_, host_maxima_[0],
                           [&](int d) { return start_ms[d] + loads_[d].intra_send_ms; });
  const HostMaxima cards(world_size_, per_host_, host_maxima_[1],
                         [&](int d) { return card_send_ends_[d]; });
  const HostMaxima starts(world_size_, per_host_, host_maxima_[2],
                          [&](int d) { return start_ms[d]; });
  for (int d = 0; d < world_size_; ++d) {
    double end = start_ms[d];
    if (has_intra) {
      end = std::max(senders.own(d), start_ms[d] + loads_[d].intra_receive_ms) +
            interconnect_.intra_host_latency_ms;
    }
    if (has_inter) {
      const double transfers =
          std::max({card_send_ends_[d], card_receive_ends_[d], cards.others(d), starts.others(d)});
      end = std::max(end, transfers + interconnect_.inter_host_latency_ms);
    }
    ends_ms[d] = end;
  }
}

LinkSchedule& thread_link_schedule(const Interconnect& interconnect, const Topology& topology,
                                   std::int64_t batch_size) {
  static thread_local std::optional<LinkSchedule> schedule;
  if (!schedule || !schedule->is_of(interconnect, topology, batch_size)) {
    schedule.emplace(interconnect, topology, batch_size);
  }
  return *schedule;
}

double own_messages_ms(const Interconnect& interconnect, const Topology& topology,
                       std::int64_t batch_size, double columns) {
  const int world_size = topology.world_size;
  const int per_host = topology.local_world_size;
  const double bytes = 4.0 * static_cast<double>(batch_size) / world_size * columns;
  double longest = 0.0;
  if (per_host > 1) {
    longest = bytes * (per_host - 1) / (interconnect.effective_intra_host_gb_per_s() * 1e6) +
              interconnect.intra_host_latency_ms;
  }
  if (world_size > per_host) {
    longest = std::max(
        longest, bytes * (world_size - per_host) / (interconnect.effective_card_gb_per_s() * 1e6) +
                     interconnect.inter_host_latency_ms);
  }
  return longest;
}

}  // namespace neuroshard
