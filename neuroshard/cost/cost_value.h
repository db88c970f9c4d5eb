// What every predicted time must be, whatever a model, a task or a platform may contain.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

/// A time [ms] that plans can be compared by, and that a plan file may have.
[[nodiscard]] constexpr bool is_cost(double ms) { return is_time(ms); }

/// For a prediction that is none: `model` made it, `of` is what it is the cost of.
[[nodiscard]] inline InputError not_a_cost(std::string_view model, std::string_view of, double ms) {
  return {fmt::format("{}: cost of {}", model, of), "0 ms, or between 1e-30 and 1e30 ms",
          std::isnan(ms) ? "nan" : fmt::format("{}", ms)};  // not "-nan", which it may be
}

}  // namespace neuroshard
