// A proven lower bound on the cost of any choice of options, and the prices of memory behind it.
#pragma once

#include <array>
#include <cstdint>

#include "neuroshard/search/options/option_space.h"

namespace neuroshard {

/// What a byte of each kind of memory is worth, in units of the space's costs.
using MemoryPrices = std::array<double, kMaxMemoryKinds>;

struct OptionBound {
  /// No choice that fits into memory has a slowest device of less, in units of the space; infinite
  /// if no choice fits.
  double cost = 0.0;
  MemoryPrices prices{};  ///< at which the bound is found
};

/// The least mean of the devices' loads in a relaxed task, in which shards can be divided and all
/// devices' memory is one, by Lagrange's prices of memory. Where T is below the bound of options
/// without a shard of more than T, no plan costs T: the result is the least T that this does not
/// rule out.
[[nodiscard]] OptionBound option_bound(const OptionSpace& space);

/// The prices for options without a shard of more than `most_cost`, and the bound that they give.
[[nodiscard]] OptionBound option_bound_below(const OptionSpace& space, double most_cost,
                                             const MemoryPrices& first = {});

/// A table's option of least cost with its memory at these prices, of those without a shard of more
/// than `most_cost`; where there is none, of those with the least largest shard. Index into
/// `space.tables()[table]`.
[[nodiscard]] int cheapest_option(const OptionSpace& space, std::size_t table,
                                  const MemoryPrices& prices, double most_cost);

/// Its cost with its memory at these prices.
[[nodiscard]] double priced(const ScaledOption& option, const MemoryPrices& prices);

}  // namespace neuroshard
