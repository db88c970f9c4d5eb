// The critical path of an iteration.
#include "neuroshard/evaluate/iteration.h"

#include <algorithm>
#include <cassert>

namespace neuroshard {

CriticalPath critical_path(std::span<const DeviceIteration> devices) {
  assert(!devices.empty());
  const auto last_to_enter = std::max_element(
      devices.begin(), devices.end(),
      [](const auto& a, const auto& b) { return a.entered_ms() < b.entered_ms(); });
  const auto last_to_end =
      std::max_element(devices.begin(), devices.end(),
                       [](const auto& a, const auto& b) { return a.total_ms() < b.total_ms(); });
  return {static_cast<std::size_t>(last_to_enter - devices.begin()),
          static_cast<std::size_t>(last_to_end - devices.begin()), last_to_enter->entered_ms()};
}

double iteration_cost_ms(std::span<const DeviceIteration> devices) {
  double cost_ms = 0.0;
  for (const DeviceIteration& device : devices) cost_ms = std::max(cost_ms, device.total_ms());
  return cost_ms;
}

}  // namespace neuroshard
