// Lists of pieces that are small enough and cost least together, to begin a search with.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// Each table cut evenly into slices of rows (if `rows`) and those into parts of columns, by the
/// numbers of which all pieces together add least to the mean device, of those whose pieces are
/// below a share of what a mean device takes, computation and own messages together, and of the
/// memory of a device; a list for each of several such shares. One cut of a table that makes no
/// device cheaper before the next one, or dearer, is none that halving piece by piece comes to.
///
/// At most `most_pieces` in all lists together, but for the first; none for a computation model
/// without structure. The lists are not in the order of placement. Throws TimeIsOver.
[[nodiscard]] std::vector<PieceList> cheapest_lists(const Simulator& simulator,
                                                    PieceCatalog& catalog, bool rows,
                                                    std::int64_t most_pieces,
                                                    const StopClock& clock);

}  // namespace neuroshard
