// The inner loop of the search: places given pieces on devices, once for each of several limits on
// a device's sum of columns, and keeps the cheapest plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "neuroshard/core/stop_clock.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/beam/device_order.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

struct GreedyGridSearchOptions {
  int num_limits = 11;     ///< limits tried, evenly spaced; the paper's M
  double max_limit = 1.5;  ///< the largest limit, relative to the mean columns of a device; the
                           ///< smallest is the mean itself
  bool take_over = true;   ///< reuse the part of earlier tries that must repeat: the same
                           ///< placement in less time
};

/// The cheapest placement found.
struct Placement {
  std::vector<int> devices;  ///< of each piece, in the order in which they were given
  double cost_ms = 0.0;  ///< predicted cost of the plan; infinite if none is feasible or worth it
  std::int64_t unplaced_bytes = 0;  ///< 0 if feasible; else the least memory left over in any try
  /// Where the first pieces went under the largest limit: a device each, or negative for none.
  std::vector<int> under_largest_limit;
  /// How many of them that limit kept from no device: a larger one places these the same.
  std::size_t free_of_limit = 0;
  [[nodiscard]] bool feasible() const { return unplaced_bytes == 0; }
};

/// Where the first pieces of a list are known to go under the largest limit.
struct KnownPlaces {
  KnownPlaces() = default;
  /// The first `count` of those that another search found, which must live longer.
  KnownPlaces(const Placement& found, std::size_t count)
      : devices(std::span(found.under_largest_limit).first(count)),
        free_of_limit(std::min(count, found.free_of_limit)) {}

  std::span<const int> devices;   ///< of each, or negative for none
  std::size_t free_of_limit = 0;  ///< how many of them the limit kept from no device
};

/// What rounding in the last digits of a cost may amount to, as a share of it.
inline constexpr double kCostRounding = 1e-9;

/// Plans that cost more than these are of no use [ms].
struct CostLimits {
  /// A plan whose computation and all-to-alls alone must cost more is not priced.
  double worth_ms = std::numeric_limits<double>::infinity();
  /// Pieces of which every plan's computation and all-to-alls alone must cost more are given up.
  double beaten_ms = std::numeric_limits<double>::infinity();
  /// As both of these, but compared with the whole cost, partial sums and copies included.
  double kept_ms = std::numeric_limits<double>::infinity();
};

/// What greedy grid searches did.
struct GreedyGridSearchStats {
  std::int64_t plans_priced = 0;  ///< placements whose all-to-alls were predicted
  std::int64_t head_evaluations = 0;
};

/// One worker's greedy grid search: scratch memory is kept between calls.
class GreedyGridSearch {
 public:
  /// Keeps references to both.
  GreedyGridSearch(const Simulator& simulator, const PieceCatalog& catalog,
                   GreedyGridSearchOptions options, const StopClock& clock = {});

  /// Takes the pieces in the given order (falling single-piece cost in the paper) and puts each on
  /// the device of lowest predicted computation cost so far among those where it may lie that have
  /// memory and columns to spare. `known` says where the first pieces went under the largest limit
  /// in another search that began with the same pieces and had as many columns in all, or fewer
  /// where the limit kept none of these pieces from a device; they are placed there without a new
  /// search.
  ///
  /// Limits fall from try to try. A limit that the last try stayed below would give the same
  /// placement and is skipped, as most are; any other keeps the last try's placement up to the
  /// first piece that it forbids. States are exact sums, so that taking pieces away again leaves
  /// them bit for bit as they were.
  ///
  /// A piece that may lie on some devices alone exceeds the limit where it must: what lies anywhere
  /// then keeps away from these.
  ///
  /// A plan that must cost more than a limit is not priced: if there is no other, the result is
  /// feasible, of infinite cost, and without devices. So it is if every plan of the pieces must
  /// cost more than `beaten_ms` or `kept_ms` too, whether they fit or not: a try is given up as
  /// soon as this shows, and `under_largest_limit` then ends there. Elsewhere the result does not
  /// depend on these two.
  ///
  /// Stopped by the clock, it returns the cheapest placement so far, or throws TimeIsOver if there
  /// is none.
  [[nodiscard]] Placement search(std::span<const PieceType> pieces, const KnownPlaces& known = {},
                                 const CostLimits& limits = {});

  /// Of all calls.
  [[nodiscard]] const GreedyGridSearchStats& stats() const { return stats_; }

 private:
  struct Device {
    std::int64_t columns = 0;
    std::int64_t bytes = 0;
  };

  /// What the catalog says of one of the pieces.
  struct ListedPiece {
    std::int64_t bytes;
    std::int64_t columns;
    std::span<const double> contribution;
    std::span<const int> permitted;  ///< devices; empty: all
  };

  void try_limits(const KnownPlaces& known, Placement& best);
  /// Places what is not placed yet; stops at a piece that only the limit keeps out, or with false
  /// once its computation and all-to-alls must cost more than `most_ms`. Throws TimeIsOver.
  bool place_all(double column_limit, double most_ms);
  /// Whether this shows now that a piece was put on the device, whose cost with all columns that it
  /// may have is no higher unless its computation is above `least_of_suspect_ms`.
  [[nodiscard]] bool must_cost_more(double most_ms, double least_of_suspect_ms, int device) const;
  /// Of a device with these columns: what its all-to-alls cost at least.
  [[nodiscard]] double floor_ms(double columns) const;
  /// Puts the next piece on a device; returns the device, or why there is none.
  [[nodiscard]] int find_device(double column_limit);
  /// Records that the limit keeps the next piece from a device: the first one so kept.
  void note_refusal();
  /// Records the next piece's device, or why it has none; the caller updates the device's state.
  void note(int device);
  /// Puts the next piece on a device, or counts it as one without.
  void put(int device);
  /// Takes the last piece back.
  void take_back();
  /// Leaves the first `count` pieces as the last try placed them.
  void rewind(std::size_t count);
  /// Starts with the first pieces on these devices.
  void replay(std::span<const int> devices);
  /// Brings costs and order up to date with the states of all devices that changed.
  void refresh();
  /// How many of the first pieces the last try would have placed the same under this limit.
  [[nodiscard]] std::size_t unaffected(double column_limit) const;
  [[nodiscard]] std::int64_t widest_device() const;
  /// Counts the finished try.
  void judge(Placement& best);
  /// Whether the finished try's plan may be better than the best and worth its price.
  [[nodiscard]] bool is_worth_pricing(const Placement& best);
  [[nodiscard]] std::span<double> state_of(int device) {
    return states_[static_cast<std::size_t>(device)];
  }

  const Simulator& simulator_;
  const PieceCatalog& catalog_;
  GreedyGridSearchOptions options_;
  PatientClock clock_;
  GreedyGridSearchStats stats_;

  // The placement in progress.
  std::vector<ListedPiece> pieces_;
  std::size_t num_placed_ = 0;       ///< of the first pieces
  double worth_ms_ = 0.0;            ///< of computation and all-to-alls
  double beaten_ms_ = 0.0;           ///< likewise
  double mean_columns_ = 0.0;        ///< of a device, with all pieces
  double floor_of_mean_ms_ = 0.0;    ///< of the all-to-alls of a device with as many
  std::vector<double> rise_from_;    ///< what the pieces from each on add to all devices, at least
  double partial_sums_ms_ = 0.0;     ///< of all pieces, wherever they are
  double on_every_device_ms_ = 0.0;  ///< these, and what copies cost: beyond all-to-alls and pieces
  std::vector<int> placed_on_;       ///< of each piece: a device, or why there is none
  std::vector<std::int64_t> columns_after_;  ///< of that device, with the piece
  std::int64_t unplaced_bytes_ = 0;
  std::vector<std::int64_t> unplaced_before_;  ///< the sum before each piece without memory
  std::vector<Device> devices_;
  StateRows states_;  ///< by device
  std::vector<double> costs_;
  double total_ms_ = 0.0;  ///< of the costs
  bool limit_refused_ =
      false;  ///< whether the limit kept a piece from a device, known places aside
  std::size_t free_of_limit_ = 0;  ///< pieces before the first one so kept, known places included
  std::vector<bool> changed_;      ///< devices whose cost is not that of their state
  DeviceOrder order_;
  std::vector<double> columns_;
};

}  // namespace neuroshard
