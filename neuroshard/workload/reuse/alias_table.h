// Drawing from a fixed discrete distribution in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/workload/reuse/wide_product.h"

namespace neuroshard {

/// Walker's alias method (1977), set up by Vose's algorithm (1991): two loads and one comparison
/// for an outcome, whatever the number of outcomes.
class AliasTable {
 public:
  /// Weights: at least one, none negative, sum > 0; they need not add up to 1.
  explicit AliasTable(std::span<const double> weights);

  struct Slot {
    std::uint64_t threshold = ~std::uint64_t{0};  ///< below it the slot's own outcome, in 2^-64
    std::size_t alias = 0;
  };

  /// The outcome that belongs to 64 uniformly random bits.
  [[nodiscard]] std::size_t operator()(std::uint64_t bits) const {
    return choose(slots_.data(), slots_.size(), bits);
  }
  /// The same, of a table's slots wherever they are.
  [[nodiscard]] static constexpr std::size_t choose(const Slot* slots, std::uint64_t num_slots,
                                                    std::uint64_t bits) {
    const WideProduct product = wide_product(bits, num_slots);
    const auto slot = static_cast<std::size_t>(product.high);
    const Slot& chosen = slots[slot];
    return product.low < chosen.threshold ? slot : chosen.alias;
  }

  [[nodiscard]] std::span<const Slot> slots() const { return slots_; }

 private:
  std::vector<Slot> slots_;
};

}  // namespace neuroshard
