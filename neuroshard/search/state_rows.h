// States and contributions in memory: rows of doubles, laid out for the head's loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "neuroshard/core/machine/aligned_vector.h"

namespace neuroshard {

/// Rows of `state_size` doubles, of which element 2 begins a cache line: a network's sums begin
/// there, and loading a vector that crosses two lines takes twice as long.
class StateRows {
 public:
  explicit StateRows(std::size_t state_size, std::size_t rows = 0)
      : state_size_(state_size),
        stride_((kBefore + state_size + kPerLine - 1) / kPerLine * kPerLine),
        values_(rows * stride_, 0.0) {}

  [[nodiscard]] std::size_t state_size() const { return state_size_; }

  /// Spans of rows are valid until then. New rows are 0.
  void resize(std::size_t rows) { values_.resize(rows * stride_, 0.0); }

  [[nodiscard]] std::span<double> operator[](std::size_t row) {
    return {values_.data() + row * stride_ + kBefore, state_size_};
  }
  [[nodiscard]] std::span<const double> operator[](std::size_t row) const {
    return {values_.data() + row * stride_ + kBefore, state_size_};
  }

  void set_to_zero() { std::fill(values_.begin(), values_.end(), 0.0); }

 private:
  static constexpr std::size_t kPerLine = kCacheLineBytes / sizeof(double);
  static constexpr std::size_t kBefore = kPerLine - 2;

  std::size_t state_size_;
  std::size_t stride_;
  AlignedVector<double> values_;
};

}  // namespace neuroshard
