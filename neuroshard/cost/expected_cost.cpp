// The largest of values that scatter, by numerical integration.
#include "neuroshard/cost/expected_cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "neuroshard/cost/cost_value.h"

namespace neuroshard {

namespace {

/// Standard deviations around the largest median beyond which nothing counts: of as many devices as
/// a plan may have, 2^16, the largest is 4.3 above the median on average.
constexpr double kReach = 9.0;
/// Of Simpson's rule: differences to twice as many are below a millionth.
constexpr int kIntervals = 144;

/// Places are multiples of one in this many standard deviations, so that a million devices take no
/// longer than some thousand.
constexpr double kPlacesPerDeviation = 1024.0;

/// Medians that lie this many standard deviations from the largest, and their number.
struct Place {
  double deviations = 0.0;
  int count = 0;
};

/// Of those that may become the largest, the largest first.
std::vector<Place> places_of(std::span<const double> medians, double largest, double scatter) {
  std::vector<double> deviations;
  for (const double median : medians) {
    if (median <= 0.0) continue;
    const double from_largest = std::log(median / largest) / scatter;
    if (from_largest < -2.0 * kReach) continue;
    deviations.push_back(std::round(from_largest * kPlacesPerDeviation) / kPlacesPerDeviation);
  }
  std::sort(deviations.begin(), deviations.end(), std::greater<>());
  std::vector<Place> places;
  for (const double each : deviations) {
    if (places.empty() || places.back().deviations != each) places.push_back({each, 0});
    ++places.back().count;
  }
  return places;
}

double normal_distribution(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

double expected_largest(std::span<const double> medians, double scatter) {
  if (medians.empty()) return 0.0;
  const double largest = *std::max_element(medians.begin(), medians.end());
  if (largest <= 0.0 || scatter <= 0.0) return largest;
  const std::vector<Place> places = places_of(medians, largest, scatter);
  // The largest is exp(scatter * z) of the largest median: its expectation is the integral of the
  // probability that it is above each value, which is 1 below the reach.
  const double step = 2.0 * kReach / kIntervals;
  double integral = 0.0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double z = -kReach + step * i;
    double none_above = 1.0;
    for (const Place& place : places) {
      if (z - place.deviations > kReach) break;  // it and those further below are not above
      none_above *= std::pow(normal_distribution(z - place.deviations), place.count);
    }
    const double weight = i == 0 || i == kIntervals ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
    integral += weight * (1.0 - none_above) * scatter * std::exp(scatter * z);
  }
  return largest * (std::exp(-scatter * kReach) + integral * step / 3.0);
}

std::optional<double> expected_cost_ms(const ComputeCostModel& compute, const PlanCost& predicted) {
  const double scatter = compute.scatter();
  if (scatter <= 0.0) return std::nullopt;
  std::vector<double> compute_ms;
  double longest = 0.0;
  for (const DeviceCost& device : predicted.devices) {
    if (device.compute_ms > 0.0) compute_ms.push_back(device.compute_ms);
    longest = std::max(longest, device.compute_ms);
  }
  if (compute_ms.size() < 2) return std::nullopt;
  const double expected_ms =
      predicted.cost_ms + std::max(expected_largest(compute_ms, scatter) - longest, 0.0);
  return is_cost(expected_ms) ? std::optional(expected_ms) : std::nullopt;
}

}  // namespace neuroshard
