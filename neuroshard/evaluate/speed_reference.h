// Reference sets tell how fast the machine is, next to the speed that a model's costs are of.
#pragma once

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/reference_sets.h"
#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// What tells a machine's speed next to the speed that costs are predicted at.
struct SpeedReference {
  ReferenceSets sets;
  double usual_ms = 0.0;  ///< their geometric mean, at the speed that the model's costs are of
};

/// The reference sets that a model's samples were measured next to, as the operator measures them.
/// Throws InputError, "reference sets: expected ..., got ...", for a model that knows none or
/// others, or whose samples were measured with another number of threads.
[[nodiscard]] SpeedReference speed_reference(const ComputeCostModel& model,
                                             const BackendDescription& here);

}  // namespace neuroshard
