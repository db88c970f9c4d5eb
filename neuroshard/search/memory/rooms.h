// The devices' free memory while tables are fitted into it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace neuroshard {

/// Free memory of the devices, by size.
class Rooms {
 public:
  explicit Rooms(const std::vector<std::int64_t>& capacities) : by_device_(capacities) {
    std::vector<std::pair<std::int64_t, int>> rooms;
    rooms.reserve(capacities.size());
    for (std::size_t d = 0; d < capacities.size(); ++d) {
      rooms.emplace_back(capacities[d], static_cast<int>(d));
    }
    std::sort(rooms.begin(), rooms.end());
    by_size_.insert(rooms.begin(), rooms.end());
  }

  /// On the permitted devices; empty: on all.
  [[nodiscard]] std::int64_t largest(std::span<const int> permitted) const {
    if (permitted.empty()) return by_size_.rbegin()->first;
    std::int64_t most = 0;
    for (const int device : permitted) most = std::max(most, by_device_[device]);
    return most;
  }

  /// Takes the memory from the fullest device that has it, of those that are permitted (empty:
  /// all); -1 if none has.
  int take_best_fit(std::int64_t bytes, std::span<const int> permitted) {
    const auto found =
        permitted.empty() ? by_size_.lower_bound({bytes, -1}) : best_fit_among(bytes, permitted);
    if (found == by_size_.end()) return -1;
    auto node = by_size_.extract(found);
    const int device = node.value().second;
    node.value().first -= bytes;
    by_device_[device] = node.value().first;
    by_size_.insert(std::move(node));
    return device;
  }

 private:
  using BySize = std::set<std::pair<std::int64_t, int>>;

  [[nodiscard]] BySize::const_iterator best_fit_among(std::int64_t bytes,
                                                      std::span<const int> permitted) const {
    auto best = by_size_.end();
    for (const int device : permitted) {
      if (by_device_[device] < bytes) continue;
      const auto room = by_size_.find({by_device_[device], device});
      if (best == by_size_.end() || *room < *best) best = room;
    }
    return best;
  }

  BySize by_size_;
  std::vector<std::int64_t> by_device_;
};

}  // namespace neuroshard
