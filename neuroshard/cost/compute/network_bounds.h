// The constraints on a bounded network's weights from which its guarantees follow.
#pragma once

#include <string>

#include "neuroshard/cost/compute/compute_network.h"

namespace neuroshard {

/// The first tensor ("encoder.1.weight", "head.bias", "linear", "offset", ...) whose values break a
/// constraint of ComputeArchitecture::bounded_loads other than a sign that the file format demands;
/// empty if none does. Slopes and offsets may be off by rounding.
[[nodiscard]] std::string broken_bound(const ComputeNetwork& network);

/// Slope of the head in the sum of all loads where no hidden unit is active, and where all are.
struct HeadSlopes {
  double least = 0.0;
  double most = 0.0;
};
[[nodiscard]] HeadSlopes head_slopes(const ComputeNetwork& network);

}  // namespace neuroshard
