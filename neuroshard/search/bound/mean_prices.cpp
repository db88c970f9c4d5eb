// Tangents at a mean device.
#include "neuroshard/search/bound/mean_prices.h"

#include <numeric>

namespace neuroshard {

namespace {

/// Share of a state within which the slopes of computation change gradually.
constexpr double kSmoothing = 0.01;

}  // namespace

MeanPrices::MeanPrices(const Simulator& simulator, std::span<const double> mean_state,
                       double mean_columns)
    : simulator_(simulator), slopes_(mean_state.size()) {
  const Task& task = simulator.task();
  const auto floor_ms = [&](double columns) {
    return simulator.communication().floor_ms(task.topology, task.batch_size, columns);
  };
  (void)simulator.compute().tangent(mean_state, kSmoothing, slopes_);
  mean_ms_ = simulator.compute().bound(mean_state) + floor_ms(mean_columns);
  if (mean_columns <= 0.0) return;
  ms_per_column_ = (floor_ms(2.0 * mean_columns) - floor_ms(mean_columns)) / mean_columns;
  const double partial = 4.0 * static_cast<double>(replica_batch_size(task)) * mean_columns;
  partial_ms_per_byte_ =
      (simulator.partial_sums_ms(2.0 * partial) - simulator.partial_sums_ms(partial)) / partial;
}

double MeanPrices::price_ms(const PieceCatalog& catalog, PieceType piece) const {
  const auto contribution = catalog.contribution(piece);
  const auto columns = static_cast<double>(catalog.pooled_columns(piece));
  return std::inner_product(slopes_.begin(), slopes_.end(), contribution.begin(),
                            ms_per_column_ * columns) +
         partial_ms_per_byte_ * catalog.partial_bytes(piece) *
             simulator_.task().topology.world_size;
}

}  // namespace neuroshard
