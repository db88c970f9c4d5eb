// Full products of 64-bit numbers.
#pragma once

#include <cstdint>

namespace neuroshard {

/// a * b = high * 2^64 + low. If a is 64 uniformly random bits, `high` is uniform in [0, b) and
/// low / 2^64 an (almost) independent fraction, as fine as 64 - log2(b) bits.
struct WideProduct {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
};

[[nodiscard]] constexpr WideProduct wide_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Uint128 = unsigned __int128;
  const Uint128 product = static_cast<Uint128>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

}  // namespace neuroshard
