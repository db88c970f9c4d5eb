// What a plan is expected to cost when it runs: devices that are planned alike differ, and the
// others wait for the slowest.
#pragma once

#include <optional>
#include <span>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// Expected value of the largest of independent values, the logarithm of each of which is normal
/// around that of its median with this standard deviation: never below the largest median but for
/// rounding. `medians` are at least 0, `scatter` from 0 to 1. 0 without medians.
[[nodiscard]] double expected_largest(std::span<const double> medians, double scatter);

/// The predicted cost plus what the longest computation is expected to be longer than predicted
/// [ms], as costs of devices scatter (ComputeCostModel::scatter). None where the model does not
/// know by how much, and of a single device with computation, which waits for no other. A little
/// too much where a device with less computation enters the forward all-to-all as late as the
/// longest one, as its backward all-to-all takes longer, and where devices compute the same:
/// copies, equal slices. (Costs that nobody measured and that a training expects are another thing:
/// expected_costs.h.)
[[nodiscard]] std::optional<double> expected_cost_ms(const ComputeCostModel& compute,
                                                     const PlanCost& predicted);

}  // namespace neuroshard
