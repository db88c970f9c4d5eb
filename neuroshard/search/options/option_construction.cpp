// First choices of options.
#include "neuroshard/search/options/option_construction.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "neuroshard/search/options/option_places.h"

namespace neuroshard {

namespace {

/// Targets above the bound that are tried, and multiples of the bound's prices of memory.
constexpr double kTargets[] = {1.0, 1.01, 1.03, 1.1, 1.3, 2.0, 8.0};
constexpr double kPriceFactors[] = {1.0, 1.5, 8.0};
constexpr double kLargest = 4e18;

/// How much of a device an option's largest shard takes, of the target or of a memory.
double largest_share(const OptionSpace& space, const ScaledOption& option, double target) {
  double share = static_cast<double>(option.largest_cost) / target;
  for (std::size_t k = 0; k < space.num_memories(); ++k) {
    const double capacity = static_cast<double>(std::max<std::int64_t>(
        1, *std::max_element(space.capacity(k).begin(), space.capacity(k).end())));
    for (const ScaledShard& shard : option.shards) {
      share = std::max(share, static_cast<double>(shard.bytes[k]) / capacity);
    }
  }
  return share;
}

int rank_of(ShardPlacement placement) {
  switch (placement) {
    case ShardPlacement::all_devices:
      return 0;
    case ShardPlacement::whole_hosts:
      return 1;
    default:
      return 2;
  }
}

double energy_of_touched(const OptionAssignment& assignment, std::int64_t target) {
  double energy = 0.0;
  for (const int device : assignment.touched()) {
    energy += device_energy(assignment, device, target);
  }
  return energy;
}

/// Places tables one after the other.
class Construction {
 public:
  Construction(const OptionSpace& space, const ConstructionSettings& settings)
      : space_(space), settings_(settings), assignment_(space) {}

  OptionAssignment run() {
    const auto count = static_cast<int>(space_.tables().size());
    std::vector<int> first(count);
    std::vector<std::pair<int, double>> keys(count);
    for (int t = 0; t < count; ++t) {
      first[t] =
          cheapest_option(space_, t, settings_.prices, static_cast<double>(settings_.target));
      const ScaledOption& option = space_.tables()[t][first[t]];
      keys[t] = {rank_of(option.placement),
                 -largest_share(space_, option, static_cast<double>(settings_.target))};
    }
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    for (const int table : order) place(table, first[table]);
    return std::move(assignment_);
  }

 private:
  /// What the devices exceed with the option, and how much a table costs with it.
  std::pair<double, double> tried(int table, int option, Places& places) {
    const ScaledOption& of_table = space_.tables()[table][option];
    places = best_places(assignment_, of_table, {settings_.target, settings_.is_by_memory});
    assignment_.clear_touched();
    assignment_.place(table, option, places);
    const double after = energy_of_touched(assignment_, settings_.target);
    places = assignment_.remove(table);
    const double before = energy_of_touched(assignment_, settings_.target);
    return {after - before, priced(of_table, settings_.prices)};
  }

  void place(int table, int first) {
    Places places;
    auto best = tried(table, first, places);
    int chosen = first;
    if (best.first > 0.0) {
      for (int option = 0; option < static_cast<int>(space_.tables()[table].size()); ++option) {
        if (option == first) continue;
        Places other;
        const auto found = tried(table, option, other);
        if (found < best) {
          best = found;
          chosen = option;
          places = std::move(other);
        }
      }
    }
    assignment_.place(table, chosen, std::move(places));
  }

  const OptionSpace& space_;
  ConstructionSettings settings_;
  OptionAssignment assignment_;
};

/// Memory exceeded, then the slowest device.
using Rating = std::pair<double, std::int64_t>;

Rating rating(const OptionAssignment& assignment) {
  double beyond = 0.0;
  for (int device = 0; device < assignment.space().world_size(); ++device) {
    beyond += device_energy(assignment, device, std::numeric_limits<std::int64_t>::max());
  }
  return {beyond, assignment.slowest()};
}

}  // namespace

OptionAssignment construct(const OptionSpace& space, const ConstructionSettings& settings) {
  return Construction(space, settings).run();
}

std::vector<OptionAssignment> best_constructions(const OptionSpace& space, const OptionBound& bound,
                                                 std::size_t count) {
  std::map<Rating, OptionAssignment> found;
  const bool has_prices =
      std::ranges::any_of(bound.prices, [](double price) { return price > 0.0; });
  for (const double target : kTargets) {
    for (const double factor : kPriceFactors) {
      if (factor != kPriceFactors[0] && !has_prices) continue;
      for (const bool is_by_memory : {false, true}) {
        ConstructionSettings settings;
        settings.target = std::max<std::int64_t>(
            1, std::llround(std::min(target * std::min(bound.cost, kLargest), kLargest)));
        settings.prices = bound.prices;
        for (double& price : settings.prices) price *= factor;
        settings.is_by_memory = is_by_memory;
        OptionAssignment one = construct(space, settings);
        const Rating of_one = rating(one);
        found.try_emplace(of_one, std::move(one));
        if (found.size() > count) found.erase(std::prev(found.end()));
      }
    }
  }
  std::vector<OptionAssignment> best;
  for (auto& [of_one, assignment] : found) best.push_back(std::move(assignment));
  return best;
}

}  // namespace neuroshard
