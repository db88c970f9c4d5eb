// Improvement of a choice of options: chains of annealing towards a target below the best cost.
#pragma once

#include <cstdint>

#include "neuroshard/search/options/option_assignment.h"

namespace neuroshard {

struct OptionAnnealingSettings {
  std::int64_t steps = 0;  ///< neighbours tried
  std::uint64_t seed = 0;
  double bound = 0.0;  ///< cost that no choice is below, in units of the space
  /// Over the square of the relative way to the target.
  double first_temperature = 0.01;
  /// The temperature falls geometrically to this share of the first one.
  double last_temperature = 1e-5;
};

struct OptionAnnealingStats {
  std::int64_t steps = 0;
  std::int64_t accepted = 0;
};

/// Tries neighbours of the assignment: a single shard or a group elsewhere, two of them exchanged,
/// or another option of a table, mostly of tables on the slowest devices. Returns the best met: it
/// fits and its slowest device is the quickest; if none fits, what it began with.
[[nodiscard]] OptionAssignment anneal(const OptionAssignment& first,
                                      const OptionAnnealingSettings& settings,
                                      OptionAnnealingStats& stats);

}  // namespace neuroshard
