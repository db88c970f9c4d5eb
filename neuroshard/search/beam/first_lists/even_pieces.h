// Lists of pieces of which none takes long by itself, to begin a search with.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// The tables cut until no piece alone on its device would take longer than a limit, computation
/// and its own messages together; a list for each of several limits, from below what the costliest
/// table takes down to half of a mean device's time. Where whole tables take less than that, there
/// are none. Each limit is met in two ways: by columns, and by halving columns or (if `rows`) rows,
/// whichever leaves pieces that take less. Pieces are halved down to `most_bytes` too, as far as
/// they can be. A search that makes one cut a level does not come to such lists where devices are
/// many and tables few: nothing is gained before the last of the wide tables is cut.
///
/// At most `most_pieces` in all lists together. The lists are not in the order of placement.
/// Throws TimeIsOver.
[[nodiscard]] std::vector<PieceList> even_lists(const Simulator& simulator, PieceCatalog& catalog,
                                                bool rows, std::int64_t most_bytes,
                                                std::int64_t most_pieces, const StopClock& clock);

/// Cuts that it takes, roughly, before no piece takes longer than a mean device. Throws TimeIsOver.
[[nodiscard]] std::int64_t cuts_to_even_pieces(const Simulator& simulator, const StopClock& clock);

}  // namespace neuroshard
