// Quantiles of noisy timings.
#include "neuroshard/collect/compute/repeated_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace neuroshard {

namespace {

struct Ranks {
  std::size_t lower, upper;  ///< from 0
};

/// The order statistics of n values that enclose a quantile with a probability of at least 95 %,
/// at most 2.5 % on either side.
std::optional<Ranks> enclosing_ranks(std::size_t n, double quantile) {
  constexpr double kTail = 0.025;
  // below(i): probability that at most i of the values lie below the quantile.
  const auto size = static_cast<double>(n);
  double term = std::pow(1.0 - quantile, size);
  double below = term;
  std::optional<std::size_t> lower;
  for (std::size_t i = 0; i < n; ++i) {
    if (below <= kTail) lower = i;
    // The value of rank i lies above the quantile if at most i values lie below it.
    if (1.0 - below <= kTail) return lower ? std::optional(Ranks{*lower, i}) : std::nullopt;
    const auto k = static_cast<double>(i);
    term *= (size - k) / (k + 1.0) * quantile / (1.0 - quantile);
    below += term;
  }
  return std::nullopt;
}

}  // namespace

QuantileEstimate estimate_quantile(std::span<const double> values, double quantile) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  if (n == 0) return {0.0, kInfinity};
  const double position = quantile * static_cast<double>(n - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, n - 1);
  const double value = std::lerp(sorted[low], sorted[high], position - static_cast<double>(low));
  const std::optional<Ranks> ranks = enclosing_ranks(n, quantile);
  if (!ranks) return {value, kInfinity};
  return {value, 0.5 * (sorted[ranks->upper] - sorted[ranks->lower]) / value};
}

void RepeatedTiming::add(double value, double seconds) {
  seconds_ += seconds;
  if (!warming_up()) values_.push_back(value);
  ++runs_;
}

int RepeatedTiming::runs_until_next_look() const {
  const bool hurried =
      options_.hurried_repetitions > 0 && (runs_ == 0 || seconds_ > options_.max_seconds);
  const int least = hurried ? fewest_repetitions_in_a_hurry() : options_.min_repetitions;
  const int needed = options_.warm_ups + least - runs_;
  return needed > 0 ? needed : std::max(options_.further_repetitions, 1);
}

int RepeatedTiming::fewest_repetitions_in_a_hurry() const {
  return options_.hurried_repetitions > 0
             ? std::min(options_.hurried_repetitions, options_.min_repetitions)
             : options_.min_repetitions;
}

double RepeatedTiming::expected_seconds(double usual_seconds) const {
  const double one = runs_ > 0 ? seconds_ / runs_ : usual_seconds;
  int least = options_.min_repetitions;
  if (one * least > options_.max_seconds) {
    const auto within = static_cast<int>(std::ceil(options_.max_seconds / one));
    least = std::clamp(within, fewest_repetitions_in_a_hurry(), least);
  }
  return one * std::max(options_.warm_ups + least, runs_);
}

bool RepeatedTiming::suffices_in_a_hurry() const {
  return static_cast<int>(values_.size()) >= fewest_repetitions_in_a_hurry();
}

bool RepeatedTiming::done() const {
  const auto repetitions = static_cast<int>(values_.size());
  if (options_.hurried_repetitions > 0 && repetitions >= options_.hurried_repetitions &&
      seconds_ > options_.max_seconds) {
    return true;
  }
  if (repetitions < options_.min_repetitions) return false;
  return repetitions >= options_.max_repetitions || seconds_ > options_.max_seconds ||
         estimate().interval <= options_.target_interval;
}

}  // namespace neuroshard
