// Seeded randomness: one small generator whose sequence is the same on every platform.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

namespace neuroshard {

/// Finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection that mixes all 64 bits.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A number that depends on all of a name, the same everywhere.
constexpr std::uint64_t hash_of_name(std::string_view name) {
  std::uint64_t hash = 0;
  for (const char c : name) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

/// xoshiro256** (Blackman and Vigna 2018). The standard library's distributions differ between
/// implementations, so the few that are needed are members here.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) word = mix64(seed++ * 0xd1342543de82ef95ULL + 1);
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~0ULL; }

  result_type operator()() {
    const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// Uniform in [0, bound); bound > 0. Multiply-shift: its bias is below 2^-64 * bound.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Uint128 = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Uint128>((*this)()) * bound) >> 64);
  }

  /// Uniform in [low, high], both included.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    // Unsigned, as the range may have more values than a signed integer counts.
    const auto first = static_cast<std::uint64_t>(low);
    const std::uint64_t last = static_cast<std::uint64_t>(high) - first;
    return static_cast<std::int64_t>(first + (last == max() ? (*this)() : below(last + 1)));
  }

  /// Standard normal (Box-Muller; the second value is not kept, so a call is stateless).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

  /// An independent generator for a part of the work, e.g. sample number `stream`.
  [[nodiscard]] static Random for_stream(std::uint64_t seed, std::uint64_t stream) {
    return Random(mix64(seed) ^ mix64(stream * 0x2545f4914f6cdd1dULL + 0x632be59bd9b4e019ULL));
  }

 private:
  static constexpr std::uint64_t rotate_left(std::uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
  }
  std::uint64_t state_[4];
};

}  // namespace neuroshard
