// What any placement of a list of pieces costs at least, by its mean device.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/beam/piece_list.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// What the pieces of a list add up to, on all devices together.
struct ListTotals {
  std::vector<double> state;  ///< of the computation model
  double columns = 0.0;       ///< pooled
  double partial_bytes = 0.0;
};

/// Where a device's computation is a convex, increasing function of its state, the slowest device
/// costs no less than one with the mean of all states, and likewise its all-to-alls no less than
/// those of the mean columns. The sums of a list with one cut more follow from its parent's.
class MeanBound {
 public:
  /// Keeps references to both.
  MeanBound(const Simulator& simulator, const PieceCatalog& catalog)
      : simulator_(simulator), catalog_(catalog) {}

  /// False where computation has no such structure: there is no bound then.
  [[nodiscard]] bool exists() const { return simulator_.compute().is_convex_increasing(); }

  [[nodiscard]] ListTotals totals(const PieceList& pieces) const;

  /// Adds all slices of the piece's columns, or with `times` = -1 takes them away.
  void add_columns_of(PieceType piece, double times, ListTotals& totals) const;

  /// No placement of pieces with these totals costs less [ms], but for rounding.
  [[nodiscard]] double least_ms(const ListTotals& totals);

  /// Evaluations of the computation model so far.
  [[nodiscard]] std::int64_t head_evaluations() const { return head_evaluations_; }

 private:
  void add(PieceType piece, double times, ListTotals& totals) const;

  const Simulator& simulator_;
  const PieceCatalog& catalog_;
  std::vector<double> mean_;  ///< room for a state
  std::int64_t head_evaluations_ = 0;
};

}  // namespace neuroshard
