// First choices of options: every table its cheapest at the bound's prices of memory, placed in
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "neuroshard/search/options/option_assignment.h"
#include "neuroshard/search/options/option_bound.h"

namespace neuroshard {

struct ConstructionSettings {
  MemoryPrices prices{};
  /// No option with a shard of more than this, where a table has others; devices should stay below.
  std::int64_t target = 1;
  /// Devices are chosen by their memory as well as by their cost.
  bool is_by_memory = false;
};

/// Places every table: those on all devices first, then groups, then single shards, the largest (of
/// the target or of a memory) first. A table that would bring its devices above the target or
/// beyond their memory takes the option that does so least. The result may exceed both.
[[nodiscard]] OptionAssignment construct(const OptionSpace& space,
                                         const ConstructionSettings& settings);

/// The best of several, at most `count` of different cost, the best first: they fit and their
/// slowest device is the quickest, or they exceed memory least. At least one.
[[nodiscard]] std::vector<OptionAssignment> best_constructions(const OptionSpace& space,
                                                               const OptionBound& bound,
                                                               std::size_t count);

}  // namespace neuroshard
