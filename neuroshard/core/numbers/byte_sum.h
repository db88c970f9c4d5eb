// Sums of sizes: one size fits into 64 bits, the sum of many tables' need not.
#pragma once

#include <cstdint>
#include <limits>

namespace neuroshard {

/// Exact sums and differences of any number of sizes that are met in practice: 2^64 of them.
__extension__ using WideBytes = __int128;

/// `sum + bytes`, or the largest number there is where that is more: for comparisons with what a
/// device has, which is at most 2^60 bytes. Both are at least 0.
[[nodiscard]] constexpr std::int64_t add_saturated(std::int64_t sum, std::int64_t bytes) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return sum > kMax - bytes ? kMax : sum + bytes;
}

/// The sum, or the largest number there is where that is more.
[[nodiscard]] constexpr std::int64_t saturated(WideBytes sum) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return sum > kMax ? kMax : static_cast<std::int64_t>(sum);
}

}  // namespace neuroshard
