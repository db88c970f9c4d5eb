// Filling devices with tables one after the other: quick, but no plan found does not mean that
// there is none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/search/memory/exact_memory_fit.h"

namespace neuroshard {

enum class FillingOrder {
  bytes,     ///< the largest piece first
  narrowest  ///< the piece of the table with the largest narrowest piece first: small grains last
};
enum class FillingCuts { none, halve, fill };

/// One way to fill the devices.
struct FillingStrategy {
  FillingOrder order;
  FillingCuts cutting;
  std::uint64_t disturbance = 0;  ///< if not 0: sizes count 1/4 to 4 times at random
  bool pinned_first = true;  ///< tables with the fewest devices to lie on come before all others
};

/// The one that leaves least memory unused comes first: it alone answers most questions of
/// whether a task fits. A device is left with less room than the narrowest piece of the table at
/// hand, and that falls from table to table.
inline constexpr std::array<FillingStrategy, 5> kFillingStrategies{
    {{FillingOrder::narrowest, FillingCuts::fill},
     {FillingOrder::bytes, FillingCuts::none},
     {FillingOrder::bytes, FillingCuts::halve},
     {FillingOrder::bytes, FillingCuts::fill},
     {FillingOrder::narrowest, FillingCuts::halve}}};

struct Filled {
  std::vector<Shard> shards;    ///< in canonical order; empty if not all tables could be placed
  int table_without_room = -1;  ///< the first that could not
};

/// Whole tables by best fit in the strategy's order; what has no room anywhere is cut as the
/// strategy says. About (tables + cuts) * log(devices) steps. Throws TimeIsOver.
[[nodiscard]] Filled fill_devices(const Task& task, FillingStrategy strategy,
                                  const StopClock& clock = {});

/// The shards of the first of many disturbed orders that places all, or else the answer of the
/// exact search table after table (exact_memory_fit.h), which small tasks get. Throws TimeIsOver.
[[nodiscard]] ExactFit fill_stubbornly(const Task& task, const StopClock& clock = {});

}  // namespace neuroshard
