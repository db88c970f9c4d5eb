// A training iteration device by device, as it was measured among processes or simulated on a
// cluster, and its critical path.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace neuroshard {

/// Of one device; all times in milliseconds.
struct DeviceIteration {
  double backward_comm_ms = 0.0;  ///< gradients come in; all devices enter together
  double update_ms = 0.0;         ///< backward pass with optimizer
  double lookup_ms = 0.0;         ///< forward pass of the next batch
  double forward_comm_ms = 0.0;   ///< from this device's own entry, waiting included

  [[nodiscard]] double compute_ms() const { return update_ms + lookup_ms; }
  [[nodiscard]] double total_ms() const {
    return backward_comm_ms + update_ms + lookup_ms + forward_comm_ms;
  }
};

/// Iterations of a plan, summed up.
struct PlanIterations {
  std::vector<DeviceIteration> devices;  ///< quantiles over the iterations
  double cost_ms = 0.0;                  ///< quantile of the slowest device's total
  int iterations = 0;
  double interval = 0.0;  ///< relative half-width of the 95 % interval of the cost
};

/// The device that the others wait for, and the one that ends last.
struct CriticalPath {
  std::size_t last_to_enter = 0;  ///< device that enters the forward all-to-all last
  std::size_t last_to_end = 0;    ///< device that ends last
  double entered_ms = 0.0;        ///< when the first of them does, since the iteration began
};

/// Of at least one device.
[[nodiscard]] CriticalPath critical_path(std::span<const DeviceIteration> devices);

/// Total of the slowest device [ms]; 0 without devices.
[[nodiscard]] double iteration_cost_ms(std::span<const DeviceIteration> devices);

}  // namespace neuroshard
