// Sends, receives and shared cards.
#include "neuroshard/cost/communication/link_schedule.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <numeric>

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

LinkSchedule::LinkSchedule(const ClusterNetwork& network, const Topology& topology,
                           std::int64_t batch_size, std::int64_t bytes_per_element)
    : network_(network),
      world_size_(topology.world_size),
      per_host_(topology.local_world_size),
      batch_bytes_(bytes_per_element * batch_size),
      loads_(world_size_),
      card_send_ends_(world_size_),
      card_receive_ends_(world_size_) {
  const double bytes = static_cast<double>(batch_bytes_) / world_size_;
  intra_ms_per_column_ = bytes / (network.intra_host_gb_per_s * 1e6);
  inter_ms_per_column_ = bytes / (network.inter_host_gb_per_s * 1e6);
}

bool LinkSchedule::is_of(const ClusterNetwork& network, const Topology& topology,
                         std::int64_t batch_size, std::int64_t bytes_per_element) const {
  return network == network_ && topology.world_size == world_size_ &&
         topology.local_world_size == per_host_ && bytes_per_element * batch_size == batch_bytes_;
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
void LinkSchedule::share_cards(std::span<const double> start_ms, const Work& work,
                               std::vector<double>& ends) {
  const int on_card = std::min(network_.devices_per_card, per_host_);
  if (on_card == 1) {
    for (int d = 0; d < world_size_; ++d) ends[d] = start_ms[d] + work(d);
    return;
  }
  std::vector<int> order;
  std::vector<double> left(world_size_);
  for (int host = 0; host < world_size_; host += per_host_) {
    for (int first = host; first < host + per_host_; first += on_card) {
      const int last = std::min(first + on_card, host + per_host_);
      order.resize(last - first);
      std::iota(order.begin(), order.end(), first);
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return start_ms[a] < start_ms[b]; });
      std::vector<int> active;
      double now = start_ms[order.front()];
      for (std::size_t arrived = 0; arrived < order.size() || !active.empty();) {
        while (arrived < order.size() && start_ms[order[arrived]] <= now) {
          const int d = order[arrived++];
          left[d] = work(d);
          ends[d] = start_ms[d];
          if (left[d] > 0.0) active.push_back(d);
        }
        const double next = arrived < order.size() ? start_ms[order[arrived]]
                                                   : std::numeric_limits<double>::infinity();
        if (active.empty()) {
          if (arrived < order.size()) now = next;
          continue;
        }
        const auto flows = static_cast<double>(active.size());
        const int shortest = *std::min_element(active.begin(), active.end(),
                                               [&](int a, int b) { return left[a] < left[b]; });
        const double step = std::min(left[shortest] * flows, next - now);
        const bool ended = left[shortest] * flows <= next - now;
        const double done = ended ? left[shortest] : step / flows;
        now = ended ? now + step : next;
        std::erase_if(active, [&](int d) {
          left[d] -= done;
          if (left[d] > 0.0) return false;
          ends[d] = now;
          return true;
        });
      }
    }
  }
}

void LinkSchedule::ends(std::span<const double> columns, std::span<const double> start_ms,
                        std::span<double> ends_ms) {
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
            network_.intra_host_latency_ms;
    }
    if (has_inter) {
      const double transfers =
          std::max({card_send_ends_[d], card_receive_ends_[d], cards.others(d), starts.others(d)});
      end = std::max(end, transfers + network_.inter_host_latency_ms);
    }
    ends_ms[d] = end;
  }
}

}  // namespace neuroshard
