// Where the parts of an option go.
#include "neuroshard/search/options/option_places.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"

namespace neuroshard {

namespace {

/// Bytes beyond the memory, which may be any number below 0, as a share of it.
double excess(std::int64_t used, std::int64_t capacity) {
  if (used <= capacity) return 0.0;
  return static_cast<double>(WideBytes{used} - capacity) /
         static_cast<double>(std::max<std::int64_t>(capacity, 1));
}

/// Finds places for the parts of one option, which add to what the assignment has already.
class PlaceFinder {
 public:
  PlaceFinder(const OptionAssignment& assignment, const ScaledOption& option,
              const PlaceRating& rating)
      : assignment_(assignment),
        space_(assignment.space()),
        option_(option),
        rating_(rating),
        places_(static_cast<std::size_t>(num_places(space_, option))) {}

  Places find() {
    switch (option_.placement) {
      case ShardPlacement::all_devices:
        break;
      case ShardPlacement::whole_hosts:
        find_hosts();
        break;
      case ShardPlacement::devices_of_one_host:
        find_in_one_host();
        break;
      case ShardPlacement::any_device:
      case ShardPlacement::distinct_devices:
        find_devices(0, space_.world_size(), option_.placement == ShardPlacement::distinct_devices);
        break;
    }
    return std::move(places_);
  }

 private:
  /// Memory exceeded, then cost: less is better.
  using Score = std::pair<double, double>;
  static constexpr Score kWorst{std::numeric_limits<double>::infinity(), 0.0};

  /// Of a device with one more shard, and the option's shards that were found a place there before.
  [[nodiscard]] Score score(int device, const ScaledShard& shard) const {
    std::int64_t cost = assignment_.load()[device] + shard.cost;
    BytesByKind bytes = shard.bytes;
    for (const auto& [place, earlier] : taken_) {
      if (place != device) continue;
      cost += earlier->cost;
      for (std::size_t k = 0; k < kMaxMemoryKinds; ++k) bytes[k] += earlier->bytes[k];
    }
    double beyond = 0.0;
    double fullest = static_cast<double>(cost) / static_cast<double>(rating_.target);
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      const std::int64_t used = assignment_.used(k, device) + bytes[k];
      const std::int64_t capacity = space_.capacity(k)[device];
      beyond += excess(used, capacity);
      if (rating_.is_by_memory) {
        fullest = std::max(fullest, static_cast<double>(used) /
                                        static_cast<double>(std::max<std::int64_t>(capacity, 1)));
      }
    }
    return {beyond, fullest};
  }

  /// The worst of a host's devices with a group of shards.
  [[nodiscard]] Score score_of_host(int host, int group) const {
    Score worst{0.0, 0.0};
    const int local = space_.local_world_size();
    for (int i = 0; i < local; ++i) {
      const Score of_device = score(host * local + i, option_.shards[group * local + i]);
      worst.first += of_device.first;
      worst.second = std::max(worst.second, of_device.second);
    }
    return worst;
  }

  /// Devices [first, first + count) for all shards; the sum of what exceeds and the worst device.
  Score find_devices(int first, int count, bool distinct) {
    taken_.clear();
    std::vector<int> order(option_.shards.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return option_.shards[a].cost > option_.shards[b].cost; });
    Score worst{0.0, 0.0};
    for (const int shard : order) {
      Score best = kWorst;
      int chosen = first;
      for (int device = first; device < first + count; ++device) {
        if (distinct && is_taken(device)) continue;
        const Score found = score(device, option_.shards[shard]);
        if (found < best) {
          best = found;
          chosen = device;
        }
      }
      places_[shard] = chosen;
      taken_.emplace_back(chosen, &option_.shards[shard]);
      worst.first += best.first;
      worst.second = std::max(worst.second, best.second);
    }
    return worst;
  }

  void find_in_one_host() {
    Score best = kWorst;
    Places chosen = places_;
    const int local = space_.local_world_size();
    for (int first = 0; first < space_.world_size(); first += local) {
      const int count = std::min(local, space_.world_size() - first);
      const Score found = find_devices(first, count, false);
      if (found < best) {
        best = found;
        chosen = places_;
      }
    }
    places_ = std::move(chosen);
  }

  void find_hosts() {
    const auto groups = static_cast<int>(places_.size());
    std::vector<int> times(static_cast<std::size_t>(space_.num_hosts()), 0);
    for (int group = 0; group < groups; ++group) {
      Score best = kWorst;
      int chosen = 0;
      const int least = *std::min_element(times.begin(), times.end());
      for (int host = 0; host < space_.num_hosts(); ++host) {
        if (times[host] > least) continue;
        const Score found = score_of_host(host, group);
        if (found < best) {
          best = found;
          chosen = host;
        }
      }
      places_[group] = chosen;
      ++times[chosen];
      const int local = space_.local_world_size();
      for (int i = 0; i < local; ++i) {
        taken_.emplace_back(chosen * local + i, &option_.shards[group * local + i]);
      }
    }
  }

  [[nodiscard]] bool is_taken(int device) const {
    return std::ranges::any_of(taken_, [&](const auto& taken) { return taken.first == device; });
  }

  const OptionAssignment& assignment_;
  const OptionSpace& space_;
  const ScaledOption& option_;
  PlaceRating rating_;
  Places places_;
  std::vector<std::pair<int, const ScaledShard*>> taken_;  ///< device and shard
};

}  // namespace

double device_energy(const OptionAssignment& assignment, int device, std::int64_t target) {
  double energy = 0.0;
  const std::int64_t load = assignment.load()[device];
  if (load > target) {
    const double above = static_cast<double>(load - target) / static_cast<double>(target);
    energy += above * above;
  }
  const OptionSpace& space = assignment.space();
  for (std::size_t k = 0; k < space.num_memories(); ++k) {
    const double beyond = excess(assignment.used(k, device), space.capacity(k)[device]);
    energy += beyond * (1.0 + beyond);
  }
  return energy;
}

Places best_places(const OptionAssignment& assignment, const ScaledOption& option,
                   const PlaceRating& rating) {
  return PlaceFinder(assignment, option, rating).find();
}

Places random_places(const OptionSpace& space, const ScaledOption& option, Random& random) {
  Places places(static_cast<std::size_t>(num_places(space, option)));
  const bool is_group = option.placement == ShardPlacement::whole_hosts;
  int first = 0;
  int count = is_group ? space.num_hosts() : space.world_size();
  if (option.placement == ShardPlacement::devices_of_one_host) {
    const int local = space.local_world_size();
    const int hosts = (space.world_size() + local - 1) / local;
    first = static_cast<int>(random.below(hosts)) * local;
    count = std::min(local, space.world_size() - first);
  }
  if (is_group || option.placement == ShardPlacement::distinct_devices) {
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = order[i % order.size()];
    return places;
  }
  for (int& place : places) place = first + static_cast<int>(random.below(count));
  return places;
}

}  // namespace neuroshard
