// What every predicted time must be, whatever a model, a task or a platform may contain.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "neuroshard/core/error.h"

namespace neuroshard {

/// A time [ms] that plans can be compared by: finite and at least 0, hence no NaN.
[[nodiscard]] constexpr bool is_cost(double ms) {
  return ms >= 0.0 && ms <= std::numeric_limits<double>::max();
}

/// For a prediction that is none: `model` made it, `of` is what it is the cost of.
[[nodiscard]] inline InputError not_a_cost(std::string_view model, std::string_view of, double ms) {
  return {fmt::format("{}: cost of {}", model, of), "a finite time of at least 0 ms",
          fmt::format("{}", ms)};
}

}  // namespace neuroshard
