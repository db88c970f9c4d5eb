// The inner loop of the search: places given pieces on devices, once for each of several limits on
// a device's sum of columns, and keeps the cheapest plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/piece_catalog.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct GreedyGridSearchOptions {
  int num_limits = 11;     ///< limits tried, evenly spaced; the paper's M
  double max_limit = 1.5;  ///< the largest limit, relative to the mean columns of a device; the
                           ///< smallest is the mean itself
};

/// The cheapest placement found.
struct Placement {
  std::vector<int> devices;         ///< of each piece, in the order in which they were given
  double cost_ms = 0.0;             ///< predicted cost of the plan; infinite if none is feasible
  std::int64_t unplaced_bytes = 0;  ///< 0 if feasible; else the least memory left over in any try
  [[nodiscard]] bool feasible() const { return unplaced_bytes == 0; }
};

/// One worker's greedy grid search: scratch memory is kept between calls.
class GreedyGridSearch {
 public:
  /// Keeps references to both.
  GreedyGridSearch(const Simulator& simulator, const PieceCatalog& catalog,
                   GreedyGridSearchOptions options);

  /// Takes the pieces in the given order (falling single-piece cost in the paper) and puts each on
  /// the device of lowest predicted computation cost so far among those with memory and columns to
  /// spare. A limit below which the last try already stays would end as that one did and is passed
  /// over, which is most of them.
  [[nodiscard]] Placement search(std::span<const PieceType> pieces);

  /// Counts of what all calls did.
  [[nodiscard]] const SearchStats& stats() const { return stats_; }

 private:
  struct Device {
    double cost;
    std::int64_t columns;
    std::int64_t bytes;
  };

  void place_all(std::span<const PieceType> pieces, double column_limit);
  bool place_one(PieceType piece, std::size_t position, double column_limit);
  /// Moves the device at this rank, whose cost has changed, to where it belongs.
  void reorder(std::size_t rank);
  /// Places and, if every piece found a place, prices under one limit.
  void try_limit(std::span<const PieceType> pieces, double column_limit, Placement& best);
  [[nodiscard]] std::int64_t widest_device() const;
  [[nodiscard]] double price();

  const Simulator& simulator_;
  const PieceCatalog& catalog_;
  GreedyGridSearchOptions options_;
  SearchStats stats_;

  // State of the placement in progress.
  std::vector<double> states_;  ///< [device][state]
  std::vector<Device> devices_;
  std::vector<int> by_cost_;  ///< devices by rising cost, equal ones by number
  std::vector<int> placed_on_;
  std::int64_t unplaced_bytes_ = 0;
  std::vector<double> compute_ms_;
  std::vector<double> columns_;
};

}  // namespace neuroshard
