// Tables halved until no piece takes longer than a limit.
#include "neuroshard/search/beam/first_lists/even_pieces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace neuroshard {

namespace {

/// From one limit to the next.
constexpr double kLimitFactor = 0.70710678118654752;
/// The least limit, relative to a mean device's time.
constexpr double kLeastLimit = 0.5;
/// Parts of a table that are counted, at the most.
constexpr double kMostParts = 1e6;

class EvenLists {
 public:
  EvenLists(const Simulator& simulator, PieceCatalog& catalog, std::int64_t most_bytes,
            const StopClock& clock)
      : simulator_(simulator), catalog_(catalog), most_bytes_(most_bytes), clock_(clock) {
    for (std::size_t t = 0; t < simulator.task().tables.size(); ++t) {
      clock_.check();
      whole_.push_back(catalog.add(static_cast<int>(t), simulator.task().tables[t].embedding_dim));
    }
  }

  /// What the costliest table takes alone [ms].
  [[nodiscard]] double longest_ms() const {
    double longest = 0.0;
    for (const PieceType table : whole_) longest = std::max(longest, floor_ms(table));
    return longest;
  }

  /// What a device with an equal share of everything takes, roughly [ms].
  [[nodiscard]] double mean_ms() const {
    double compute_ms = 0.0;
    double columns = 0.0;
    for (const PieceType table : whole_) {
      compute_ms += catalog_.single_cost(table);
      columns += static_cast<double>(catalog_.pooled_columns(table));
    }
    const Task& task = simulator_.task();
    const double devices = task.topology.world_size;
    return compute_ms / devices +
           simulator_.communication().floor_ms(task.topology, task.batch_size, columns / devices);
  }

  [[nodiscard]] double highest_limit_ms() const { return kLimitFactor * longest_ms(); }
  [[nodiscard]] double least_limit_ms() const { return kLeastLimit * mean_ms(); }

  /// Into as many parts as mean devices' times that each table takes.
  [[nodiscard]] std::int64_t cuts() const {
    const double mean = mean_ms();
    std::int64_t cuts = 0;
    for (const PieceType table : whole_) {
      const double devices = std::ceil(floor_ms(table) / mean);
      if (devices > 1.0) cuts += std::llround(std::min(devices, kMostParts)) - 1;
    }
    return cuts;
  }

  /// More than `most_pieces`, and not all of them, if there are more.
  PieceList cut_to(double most_ms, bool rows, std::int64_t most_pieces) {
    PieceList waiting = whole_;
    PieceList pieces;
    while (!waiting.empty() && static_cast<std::int64_t>(pieces.size()) <= most_pieces) {
      clock_.check();
      const PieceType piece = waiting.back();
      waiting.pop_back();
      const bool is_small =
          floor_ms(piece) <= most_ms && catalog_.largest_bytes(piece) <= most_bytes_;
      if (is_small || !cut(piece, rows, waiting)) add_slices(catalog_, piece, pieces);
    }
    return pieces;
  }

 private:
  /// Of the longest of its slices.
  [[nodiscard]] double floor_ms(PieceType piece) const {
    double compute_ms = catalog_.single_cost(piece);
    if (!catalog_.has_equal_slices(piece)) {
      for (PieceType each = piece; each < piece + catalog_.num_slices(piece); ++each) {
        compute_ms = std::max(compute_ms, catalog_.single_cost(each));
      }
    }
    const Task& task = simulator_.task();
    return compute_ms +
           simulator_.communication().floor_ms(task.topology, task.batch_size,
                                               static_cast<double>(catalog_.pooled_columns(piece)));
  }

  /// Adds the halves to `waiting`; false if the piece cannot be halved.
  bool cut(PieceType piece, bool rows, PieceList& waiting) {
    const double none = std::numeric_limits<double>::infinity();
    std::pair<PieceType, PieceType> halves;
    const bool by_columns = catalog_.can_halve(piece);
    if (by_columns) halves = catalog_.halves(piece);
    PieceType slices = 0;
    const bool by_rows = rows && catalog_.can_halve_rows(piece);
    if (by_rows) slices = catalog_.row_half(piece);
    if (!by_columns && !by_rows) return false;
    if ((by_rows ? floor_ms(slices) : none) < (by_columns ? floor_ms(halves.first) : none)) {
      waiting.push_back(slices);
    } else {
      waiting.push_back(halves.first);
      waiting.push_back(halves.second);
    }
    return true;
  }

  const Simulator& simulator_;
  PieceCatalog& catalog_;
  std::int64_t most_bytes_;
  PatientClock clock_;
  PieceList whole_;  ///< the tables
};

}  // namespace

std::vector<PieceList> even_lists(const Simulator& simulator, PieceCatalog& catalog, bool rows,
                                  std::int64_t most_bytes, std::int64_t most_pieces,
                                  const StopClock& clock) {
  EvenLists even(simulator, catalog, most_bytes, clock);
  std::vector<PieceList> lists;
  for (double limit_ms = even.highest_limit_ms(); limit_ms > even.least_limit_ms();
       limit_ms *= kLimitFactor) {
    for (const bool with_rows : {false, true}) {
      if (with_rows && !rows) continue;
      lists.push_back(even.cut_to(limit_ms, with_rows, most_pieces));
      most_pieces -= static_cast<std::int64_t>(lists.back().size());
      if (most_pieces < 0) {
        lists.pop_back();
        return lists;
      }
    }
  }
  return lists;
}

std::int64_t cuts_to_even_pieces(const Simulator& simulator, const StopClock& clock) {
  PieceCatalog catalog(simulator);
  return EvenLists(simulator, catalog, 0, clock).cuts();
}

}  // namespace neuroshard
