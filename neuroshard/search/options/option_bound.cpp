// A proven lower bound on the cost of any choice of options.
#include "neuroshard/search/options/option_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace neuroshard {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Rounds over all kinds of memory in which prices are sought, and halvings of each.
constexpr int kPriceRounds = 4;
constexpr int kPriceSteps = 40;
/// Halvings of the largest shard that is allowed.
constexpr int kThresholdSteps = 40;
/// Far above what sums of doubles lose.
constexpr double kRounding = 1e-9;

/// The relaxed task for options without a shard of more than a cost.
class Relaxation {
 public:
  Relaxation(const OptionSpace& space, double most_cost) : space_(space) {
    for (const auto& options : space.tables()) {
      std::vector<const ScaledOption*> allowed;
      for (const ScaledOption& option : options) {
        if (static_cast<double>(option.largest_cost) <= most_cost) allowed.push_back(&option);
      }
      is_empty_ = is_empty_ || allowed.empty();
      allowed_.push_back(std::move(allowed));
    }
    for (std::size_t k = 0; k < space.num_memories(); ++k) {
      for (const std::int64_t bytes : space.capacity(k)) {
        room_[k] += static_cast<double>(std::max<std::int64_t>(bytes, 0));
      }
    }
    for (const std::int64_t load : space.load()) load_ += static_cast<double>(load);
  }

  /// Some table has no option at all.
  [[nodiscard]] bool is_empty() const { return is_empty_; }

  struct Value {
    double bound = 0.0;                           ///< on the mean device's cost
    std::array<double, kMaxMemoryKinds> bytes{};  ///< that the cheapest options take
  };

  [[nodiscard]] Value at(const MemoryPrices& prices) const {
    Value value;
    double sum = load_;
    for (const auto& options : allowed_) {
      const ScaledOption* cheapest = options.front();
      double least = priced(*cheapest, prices);
      for (const ScaledOption* option : options) {
        const double cost = priced(*option, prices);
        if (cost < least) {
          least = cost;
          cheapest = option;
        }
      }
      sum += least;
      for (std::size_t k = 0; k < space_.num_memories(); ++k) {
        value.bytes[k] += static_cast<double>(cheapest->sum.bytes[k]);
      }
    }
    for (std::size_t k = 0; k < space_.num_memories(); ++k) sum -= prices[k] * room_[k];
    value.bound = sum / space_.world_size();
    return value;
  }

  /// Some kind of memory is too small for every table's least option.
  [[nodiscard]] bool cannot_fit() const {
    for (std::size_t k = 0; k < space_.num_memories(); ++k) {
      double least = 0.0;
      for (const auto& options : allowed_) {
        double of_table = kInfinity;
        for (const ScaledOption* option : options) {
          of_table = std::min(of_table, static_cast<double>(option->sum.bytes[k]));
        }
        least += of_table;
      }
      if (least > room_[k] * (1.0 + kRounding)) return true;
    }
    return false;
  }

  /// Better prices of one kind of memory: the bound is concave in them, and its slope has the sign
  /// of what the cheapest options take beyond what there is.
  void improve(std::size_t kind, MemoryPrices& prices) const {
    MemoryPrices tried = prices;
    const auto is_short = [&](double price) {
      tried[kind] = price;
      return at(tried).bytes[kind] > room_[kind];
    };
    if (!is_short(0.0)) {
      prices[kind] = 0.0;
      return;
    }
    double low = 0.0;
    double high = prices[kind] > 0.0 ? prices[kind] : 1.0 / std::max(room_[kind], 1.0);
    for (int i = 0; i < 200 && is_short(high); ++i) {
      low = high;
      high *= 8.0;
    }
    for (int i = 0; i < kPriceSteps && high - low > 1e-4 * high; ++i) {
      const double middle = low > 0.0 ? std::sqrt(low * high) : 0.5 * high;
      (is_short(middle) ? low : high) = middle;
    }
    prices[kind] = high;
  }

 private:
  const OptionSpace& space_;
  std::vector<std::vector<const ScaledOption*>> allowed_;
  std::array<double, kMaxMemoryKinds> room_{};
  double load_ = 0.0;
  bool is_empty_ = false;
};

}  // namespace

double priced(const ScaledOption& option, const MemoryPrices& prices) {
  double cost = static_cast<double>(option.sum.cost);
  for (std::size_t k = 0; k < kMaxMemoryKinds; ++k) {
    cost += prices[k] * static_cast<double>(option.sum.bytes[k]);
  }
  return cost;
}

int cheapest_option(const OptionSpace& space, std::size_t table, const MemoryPrices& prices,
                    double most_cost) {
  const auto& options = space.tables()[table];
  std::int64_t least_largest = std::numeric_limits<std::int64_t>::max();
  for (const ScaledOption& option : options) {
    least_largest = std::min(least_largest, option.largest_cost);
  }
  const double limit = std::max(most_cost, static_cast<double>(least_largest));
  int cheapest = 0;
  double least = kInfinity;
  for (std::size_t o = 0; o < options.size(); ++o) {
    if (static_cast<double>(options[o].largest_cost) > limit) continue;
    const double cost = priced(options[o], prices);
    if (cost < least) {
      least = cost;
      cheapest = static_cast<int>(o);
    }
  }
  return cheapest;
}

OptionBound option_bound_below(const OptionSpace& space, double most_cost,
                               const MemoryPrices& first) {
  const Relaxation relaxation(space, most_cost);
  if (relaxation.is_empty() || relaxation.cannot_fit()) return {kInfinity, first};
  OptionBound best{relaxation.at({}).bound, {}};
  MemoryPrices prices = first;
  for (int round = 0; round < kPriceRounds; ++round) {
    const MemoryPrices before = prices;
    for (std::size_t k = 0; k < space.num_memories(); ++k) relaxation.improve(k, prices);
    const double bound = relaxation.at(prices).bound;
    if (bound > best.cost) best = {bound, prices};
    if (prices == before) break;
  }
  return best;
}

OptionBound option_bound(const OptionSpace& space) {
  double high = 0.0;
  for (const std::int64_t load : space.load()) high = std::max(high, static_cast<double>(load));
  const double most_loaded = high;
  for (const auto& options : space.tables()) {
    for (const ScaledOption& option : options) {
      high = std::max(high, static_cast<double>(option.largest_cost));
    }
  }
  OptionBound bound = option_bound_below(space, high);
  // Above the largest shard, the bound does not depend on the threshold.
  if (bound.cost < high) {
    double low = 0.0;
    for (int i = 0; i < kThresholdSteps && high - low > 1e-6 * high; ++i) {
      const double middle = 0.5 * (low + high);
      const OptionBound below = option_bound_below(space, middle, bound.prices);
      if (below.cost > middle) {
        low = middle;
      } else {
        high = middle;
        bound = below;
      }
    }
    bound.cost = std::max(low, bound.cost);
  }
  bound.cost = std::max(most_loaded, bound.cost * (1.0 - kRounding));
  return bound;
}

}  // namespace neuroshard
