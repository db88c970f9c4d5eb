// Points that fill a cube evenly, better than random ones.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

/// The additive recurrence with the powers of the inverse of the generalised golden ratio
/// (x^(d+1) = x + 1), shifted at random by the seed (Cranley and Patterson 1976). Every prefix of
/// the sequence covers the cube.
template <std::size_t kDimensions>
class LowDiscrepancySequence {
 public:
  explicit LowDiscrepancySequence(std::uint64_t seed) {
    double ratio = 1.5;
    for (int i = 0; i < 64; ++i) ratio = std::pow(1.0 + ratio, 1.0 / (kDimensions + 1.0));
    Random random(seed);
    double step = 1.0;
    for (std::size_t d = 0; d < kDimensions; ++d) {
      step /= ratio;
      step_[d] = step;
      shift_[d] = random.uniform();
    }
  }

  /// Coordinates in [0, 1).
  [[nodiscard]] std::array<double, kDimensions> point(std::int64_t index) const {
    std::array<double, kDimensions> result{};
    for (std::size_t d = 0; d < kDimensions; ++d) {
      const double x = shift_[d] + step_[d] * static_cast<double>(index + 1);
      result[d] = x - std::floor(x);
    }
    return result;
  }

 private:
  std::array<double, kDimensions> step_{};
  std::array<double, kDimensions> shift_{};
};

}  // namespace neuroshard
