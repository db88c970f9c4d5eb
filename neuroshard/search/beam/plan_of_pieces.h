// A plan from pieces and the devices that they were placed on.
#pragma once

#include <span>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// Gives the pieces of each table their columns, one after the other; the slices of the same
/// columns their rows likewise. The pieces are in the order of placement
/// (PieceCatalog::goes_first), and have one device each. In canonical order.
[[nodiscard]] ShardingPlan plan_of(const Simulator& simulator, const PieceCatalog& catalog,
                                   std::span<const PieceType> pieces, std::span<const int> devices);

}  // namespace neuroshard
