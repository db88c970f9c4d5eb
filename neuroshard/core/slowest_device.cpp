// Times that differ by rounding alone count as equal.
#include "neuroshard/core/slowest_device.h"

#include <algorithm>
#include <cassert>

namespace neuroshard {

namespace {

/// Sums of the same times in another order differ by less.
constexpr double kEqual = 1e-9;

/// The shortest time that counts as equal to the longest of all devices.
template <typename F>
double least_of_longest(std::span<const DeviceCost> devices, const F& time_of) {
  double longest = time_of(devices.front());
  for (const DeviceCost& device : devices) longest = std::max(longest, time_of(device));
  return longest * (1.0 - kEqual);
}

double total_ms(const DeviceCost& device) { return device.total_ms(); }

}  // namespace

double entered_ms(const DeviceCost& device) {
  return device.backward_comm_ms + device.all_reduce_ms + device.compute_ms;
}

double last_entered_ms(std::span<const DeviceCost> devices) {
  double last_ms = 0.0;
  for (const DeviceCost& device : devices) last_ms = std::max(last_ms, entered_ms(device));
  return last_ms;
}

std::size_t slowest_device(std::span<const DeviceCost> devices) {
  assert(!devices.empty());
  const double least_ms = least_of_longest(devices, total_ms);
  std::size_t slowest = devices.size();
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].total_ms() < least_ms) continue;
    const bool is_later = slowest == devices.size() ||
                          entered_ms(devices[d]) * (1.0 - kEqual) > entered_ms(devices[slowest]);
    if (is_later) slowest = d;
  }
  return slowest;
}

bool equally_slow(std::span<const DeviceCost> devices) {
  if (devices.size() < 2) return false;
  const double least_total_ms = least_of_longest(devices, total_ms);
  const double least_entered_ms = least_of_longest(devices, entered_ms);
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceCost& device) {
    return device.total_ms() >= least_total_ms && entered_ms(device) >= least_entered_ms;
  });
}

}  // namespace neuroshard
