// Differences between neighbours.
#include "neuroshard/train/compute/device_scatter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace neuroshard {

namespace {

constexpr std::size_t kFewestDevicePairs = 30;
constexpr double kAlike = 0.1;
/// Of a normal distribution, within one standard deviation.
constexpr double kWithinOne = 0.6827;
/// Less is rounding.
constexpr double kLeastScatter = 1e-6;
/// Of a file, as whole blocks.
constexpr std::int64_t kPlacesOfFile = std::int64_t{1} << 32;
static_assert(kPlacesOfFile % kPlannedBlock == 0);

}  // namespace

std::int64_t planned_place(std::size_t file, std::int64_t id) {
  return id < kPlacesOfFile ? static_cast<std::int64_t>(file) * kPlacesOfFile + id : -1;
}

std::optional<DeviceScatter> device_scatter(std::vector<PlannedCost> costs) {
  std::stable_sort(costs.begin(), costs.end(),
                   [](const PlannedCost& a, const PlannedCost& b) { return a.place < b.place; });
  std::vector<double> differences;
  for (std::size_t i = 1; i < costs.size(); ++i) {
    const PlannedCost& a = costs[i - 1];
    const PlannedCost& b = costs[i];
    if (b.place != a.place + 1 || b.place % kPlannedBlock == 0) continue;
    if (!(a.predicted_ms > 0.0 && b.predicted_ms > 0.0))
      continue;  // the published network's may be
    if (!(std::abs(std::log(a.predicted_ms / b.predicted_ms)) < kAlike)) continue;
    differences.push_back(std::abs(std::log(a.measured_ms / a.predicted_ms) -
                                   std::log(b.measured_ms / b.predicted_ms)));
  }
  if (differences.size() < kFewestDevicePairs) return std::nullopt;
  const auto within =
      differences.begin() +
      static_cast<std::ptrdiff_t>(kWithinOne * static_cast<double>(differences.size()));
  std::nth_element(differences.begin(), within, differences.end());
  // A difference has the variance of two.
  const double scatter = *within / std::numbers::sqrt2;
  if (!(scatter > kLeastScatter && scatter < 1.0)) return std::nullopt;
  return DeviceScatter{scatter, differences.size()};
}

}  // namespace neuroshard
