// The lists of pieces that a beam search begins with.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// Each list has every table once, in the order of placement. Making them throws TimeIsOver.
class FirstLists {
 public:
  /// Keeps references; pieces are added to the catalog. `max_pieces`: see
  /// BeamSearchOptions::max_first_pieces.
  FirstLists(const Simulator& simulator, PieceCatalog& catalog, bool rows, std::int64_t max_pieces,
             const StopClock& clock)
      : simulator_(simulator),
        catalog_(catalog),
        rows_(rows),
        max_pieces_(max_pieces),
        clock_(clock) {}

  /// The tables, in `slices` of rows each (one without it), their columns halved until no piece is
  /// larger than `most_bytes` (or cannot be halved).
  [[nodiscard]] PieceList halved_to(std::int64_t most_bytes, const std::vector<int>& slices = {});

  /// Lists with the rows of the costliest tables in slices from the start: one cut of a table with
  /// most of the lookups may gain nothing before the next ones. Where tables are larger than the
  /// largest device, also one with the fewest slices with which they are not.
  [[nodiscard]] std::vector<PieceList> sliced();

  /// Columns halved to a half, a quarter, ... of the largest device, and if its rows are not cut,
  /// the cuts of this plan, which fits.
  [[nodiscard]] std::vector<PieceList> that_may_fit(const ShardingPlan& fitting);

  /// None where whole tables are small already (even_pieces.h).
  [[nodiscard]] std::vector<PieceList> of_even_pieces();

  /// None for a model without structure (cheapest_cuts.h).
  [[nodiscard]] std::vector<PieceList> of_cheapest_cuts();

  /// Bytes of the device with most memory.
  [[nodiscard]] std::int64_t largest_device() const;

 private:
  [[nodiscard]] PieceList sorted(PieceList pieces) const;
  [[nodiscard]] std::vector<PieceList> sorted(std::vector<PieceList> lists) const;

  const Simulator& simulator_;
  PieceCatalog& catalog_;
  bool rows_;
  std::int64_t max_pieces_;
  StopClock clock_;
};

}  // namespace neuroshard
