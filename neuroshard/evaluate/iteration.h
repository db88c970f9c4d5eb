// A training iteration device by device, as it was measured among processes or simulated on a
// cluster, and its critical path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

/// Of one device; all times in milliseconds.
struct DeviceIteration {
  double backward_comm_ms = 0.0;  ///< gradients come in; all devices enter together
  double update_ms = 0.0;         ///< backward pass with optimizer
  double lookup_ms = 0.0;         ///< forward pass of the next batch
  /// From this device's own entry, waiting included, to the end of the addition of partial sums.
  double forward_comm_ms = 0.0;
  double all_reduce_ms = 0.0;  ///< of the gradients of replicated tables, before their update
  double indices_ms = 0.0;     ///< sending the next batch's indices: no part of the total

  [[nodiscard]] double compute_ms() const { return update_ms + lookup_ms; }
  /// When it enters the forward all-to-all.
  [[nodiscard]] double entered_ms() const {
    return backward_comm_ms + all_reduce_ms + compute_ms();
  }
  [[nodiscard]] double total_ms() const { return entered_ms() + forward_comm_ms; }
};

/// What a plan of slices and copies adds up besides its all-to-alls, the same on every device.
struct PlanAdditions {
  std::int64_t all_reduce_bytes = 0;  ///< gradients of replicated tables
  double partial_sums_ms = 0.0;       ///< predicted: partial sums of slices of rows
};

/// Iterations of a plan, summed up.
struct PlanIterations {
  std::vector<DeviceIteration> devices;  ///< quantiles over the iterations
  double cost_ms = 0.0;                  ///< quantile of the slowest device's total
  int iterations = 0;
  double interval = 0.0;  ///< relative half-width of the 95 % interval of the cost
};

/// Values of the processes that run a plan, compared with those of one device that has all tables
/// whole. Differences are relative to the value where that is above 1.
struct ValueCheck {
  int iterations = 0;
  std::int64_t outputs = 0;  ///< pooled values that were compared, over all processes
  std::int64_t weights = 0;
  double output_difference = 0.0;  ///< the largest
  double weight_difference = 0.0;
  double tolerance = 0.0;  ///< what sums in another order may differ by

  [[nodiscard]] bool agrees() const {
    return output_difference <= tolerance && weight_difference <= tolerance;
  }
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
