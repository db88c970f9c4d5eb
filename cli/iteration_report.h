// What a plan's iterations, measured or simulated, look like beside predicted ones.
#pragma once

#include <cstddef>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/evaluate/distributed/plan_iterations.h"

namespace neuroshard::cli {

/// Whom the others wait for, and who ends last.
struct CriticalPath {
  std::size_t last_to_enter = 0;
  std::size_t last_to_end = 0;
  double entered_ms = 0.0;  ///< since the iteration began
};

[[nodiscard]] CriticalPath critical_path(const std::vector<DeviceIteration>& devices);

/// Prints both for each device and phase, and the critical path; `how` heads the columns of what
/// did not come from a model.
void print_iterations(const PlanCost& predicted, const std::vector<DeviceIteration>& devices,
                      const char* how);

}  // namespace neuroshard::cli
