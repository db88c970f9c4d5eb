// Sums over lists of pieces, and the cost of their mean device.
#include "neuroshard/search/beam/mean_bound.h"

#include <cstddef>

#include "neuroshard/cost/compute/head_kernel.h"

namespace neuroshard {

void MeanBound::add(PieceType piece, double times, ListTotals& totals) const {
  const std::span<const double> contribution = catalog_.contribution(piece);
  for (std::size_t i = 0; i < contribution.size(); ++i) {
    totals.state[i] += times * contribution[i];
  }
  totals.columns += times * static_cast<double>(catalog_.pooled_columns(piece));
  totals.partial_bytes += times * catalog_.partial_bytes(piece);
}

ListTotals MeanBound::totals(const PieceList& pieces) const {
  ListTotals totals{.state = std::vector<double>(catalog_.state_size(), 0.0)};
  for (const PieceType piece : pieces) {
    const std::span<const double> contribution = catalog_.contribution(piece);
    kernels::add(totals.state.data(), contribution.data(), contribution.size());
    totals.columns += static_cast<double>(catalog_.pooled_columns(piece));
    totals.partial_bytes += catalog_.partial_bytes(piece);
  }
  return totals;
}

void MeanBound::add_columns_of(PieceType piece, double times, ListTotals& totals) const {
  const int slices = catalog_.num_slices(piece);
  if (catalog_.has_equal_slices(piece)) {
    add(piece, times * slices, totals);
    return;
  }
  const PieceType first = catalog_.first_slice(piece);
  for (PieceType slice = first; slice < first + slices; ++slice) add(slice, times, totals);
}

double MeanBound::least_ms(const ListTotals& totals) {
  const Task& task = simulator_.task();
  const double share = 1.0 / task.topology.world_size;
  mean_.resize(totals.state.size());
  for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] = share * totals.state[i];
  ++head_evaluations_;
  return simulator_.compute().bound(mean_) +
         simulator_.communication().floor_ms(task.topology, task.batch_size,
                                             share * totals.columns) +
         simulator_.partial_sums_ms(totals.partial_bytes) + simulator_.replicas_ms();
}

}  // namespace neuroshard
