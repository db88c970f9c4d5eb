// The median of a few numbers.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace neuroshard {

/// Of an even number of values the mean of the two in the middle; there must be one at least.
[[nodiscard]] inline double median(std::vector<double> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*std::max_element(values.begin(), middle) + *middle);
}

}  // namespace neuroshard
