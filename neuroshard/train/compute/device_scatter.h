// By how much costs of devices that are planned alike differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace neuroshard {

/// Sets of so many places in a row are left out together where training is tried on samples that it
/// does not see: most devices of a plan then are, and pairs are of one such block.
inline constexpr std::int64_t kPlannedBlock = 8;

/// Where a set of a plan's device stands among those of several files: by the number of its file
/// and its own number there; -1 of a number that no sequence gets to. Each file begins with a
/// block.
[[nodiscard]] std::int64_t planned_place(std::size_t file, std::int64_t id);

/// A measured set of a plan's device, and what a model says that was not trained on it.
struct PlannedCost {
  std::int64_t place = 0;  ///< planned_place
  double predicted_ms = 0.0;
  double measured_ms = 0.0;
};

struct DeviceScatter {
  /// Standard deviation of ln(measured / predicted) of devices around what is common to those of a
  /// plan.
  double scatter = 0.0;
  std::size_t pairs = 0;  ///< that it is taken from
};

/// From pairs of sets, one after the other in a block, whose predictions differ by less than a
/// tenth and which therefore are devices of one plan, nearly always: that share of the differences
/// of ln(measured / predicted) which a normal distribution has within one standard deviation, as
/// some pairs are of two plans. What a plan's devices have in common, and the machine's speed, are
/// not in it. None of fewer than 30 pairs, if it is no more than rounding, or from 1 on.
[[nodiscard]] std::optional<DeviceScatter> device_scatter(std::vector<PlannedCost> costs);

}  // namespace neuroshard
