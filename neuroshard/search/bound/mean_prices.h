// What pieces add to a mean device: prices for choices that are made one table at a time.
#pragma once

#include <span>
#include <vector>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard {

/// Prices by the tangent of a mean device's cost: what its computation, its all-to-alls and the
/// partial sums of slices rise by at first.
class MeanPrices {
 public:
  /// Of a device with this state of the computation model and this number of pooled columns. Keeps
  /// a reference to the simulator.
  MeanPrices(const Simulator& simulator, std::span<const double> mean_state, double mean_columns);

  /// Of the piece, which may lie on any device, for all devices together [ms].
  [[nodiscard]] double price_ms(const PieceCatalog& catalog, PieceType piece) const;

  /// What the mean device costs, by the model's lower bound [ms].
  [[nodiscard]] double mean_ms() const { return mean_ms_; }

 private:
  const Simulator& simulator_;
  std::vector<double> slopes_;  ///< of its computation
  double ms_per_column_ = 0.0;
  double partial_ms_per_byte_ = 0.0;
  double mean_ms_ = 0.0;
};

}  // namespace neuroshard
