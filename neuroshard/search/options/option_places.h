// Where the parts of an option go: one after the other to the best place left.
#pragma once

#include <cstdint>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/search/options/option_assignment.h"

namespace neuroshard {

/// What makes a place bad.
struct PlaceRating {
  std::int64_t target = 0;  ///< cost that devices should stay below; > 0
  /// Whether the share of each kind of memory in use counts like the share of the target.
  bool is_by_memory = false;
};

/// What a device adds to the energy of an assignment: how far its load is above the target and its
/// memory beyond what there is, both relative; 0 if neither is.
[[nodiscard]] double device_energy(const OptionAssignment& assignment, int device,
                                   std::int64_t target);

/// Places for a table that is not placed: single shards in the order of their size, each where the
/// load is least afterwards among devices that have room for it (or exceed it least), groups
/// likewise on hosts. Where hosts are fewer than groups, all take turns.
[[nodiscard]] Places best_places(const OptionAssignment& assignment, const ScaledOption& option,
                                 const PlaceRating& rating);

/// Places for a table that is not placed, drawn from all that it may have.
[[nodiscard]] Places random_places(const OptionSpace& space, const ScaledOption& option,
                                   Random& random);

}  // namespace neuroshard
