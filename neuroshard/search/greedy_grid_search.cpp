// Greedy grid search over placements.
#include "neuroshard/search/greedy_grid_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace neuroshard {

namespace {
/// Absorbs the rounding of limits that are meant to be whole columns.
constexpr double kLimitTolerance = 1e-6;
}  // namespace

GreedyGridSearch::GreedyGridSearch(const Simulator& simulator, const PieceCatalog& catalog,
                                   GreedyGridSearchOptions options)
    : simulator_(simulator), catalog_(catalog), options_(options) {
  const auto world_size = static_cast<std::size_t>(simulator.task().topology.world_size);
  devices_.resize(world_size);
  by_cost_.resize(world_size);
  compute_ms_.resize(world_size);
  columns_.resize(world_size);
}

void GreedyGridSearch::reorder(std::size_t rank) {
  const int device = by_cost_[rank];
  const auto goes_first = [&](int a, int b) {
    return std::tie(devices_[a].cost, a) < std::tie(devices_[b].cost, b);
  };
  for (; rank + 1 < by_cost_.size() && goes_first(by_cost_[rank + 1], device); ++rank) {
    by_cost_[rank] = by_cost_[rank + 1];
  }
  // The published network may predict a lower cost with one piece more.
  for (; rank > 0 && goes_first(device, by_cost_[rank - 1]); --rank) {
    by_cost_[rank] = by_cost_[rank - 1];
  }
  by_cost_[rank] = device;
}

bool GreedyGridSearch::place_one(PieceType piece, std::size_t position, double column_limit) {
  const std::vector<std::int64_t>& capacity = simulator_.task().topology.memory_bytes;
  const std::int64_t bytes = catalog_.bytes(piece);
  const std::int64_t columns = catalog_.num_columns(piece);
  bool has_memory_somewhere = false;
  for (std::size_t rank = 0; rank < by_cost_.size(); ++rank) {
    const int number = by_cost_[rank];
    Device& device = devices_[number];
    if (device.bytes + bytes > capacity[number]) continue;
    has_memory_somewhere = true;
    if (static_cast<double>(device.columns + columns) > column_limit) continue;
    device.bytes += bytes;
    device.columns += columns;
    const std::size_t size = catalog_.state_size();
    double* state = states_.data() + number * size;
    const double* contribution = catalog_.contribution(piece).data();
    for (std::size_t i = 0; i < size; ++i) state[i] += contribution[i];
    device.cost = simulator_.compute().cost({state, size});
    ++stats_.head_evaluations;
    placed_on_[position] = number;
    reorder(rank);
    return true;
  }
  // Only memory makes a set of pieces infeasible; a limit on columns is the search's own.
  unplaced_bytes_ += has_memory_somewhere ? 0 : bytes;
  return false;
}

void GreedyGridSearch::place_all(std::span<const PieceType> pieces, double column_limit) {
  states_.assign(devices_.size() * catalog_.state_size(), 0.0);
  std::fill(devices_.begin(), devices_.end(), Device{0.0, 0, 0});
  std::iota(by_cost_.begin(), by_cost_.end(), 0);
  placed_on_.assign(pieces.size(), -1);
  unplaced_bytes_ = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    // A piece that only the limit keeps out ends the try; one without memory is counted.
    if (!place_one(pieces[i], i, column_limit) && unplaced_bytes_ == 0) return;
  }
}

double GreedyGridSearch::price() {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    compute_ms_[d] = devices_[d].cost;
    columns_[d] = static_cast<double>(devices_[d].columns);
  }
  ++stats_.plans_priced;
  return simulator_.combine(compute_ms_, columns_).cost_ms;
}

void GreedyGridSearch::try_limit(std::span<const PieceType> pieces, double column_limit,
                                 Placement& best) {
  place_all(pieces, column_limit);
  if (unplaced_bytes_ > 0) {
    if (!best.feasible()) best.unplaced_bytes = std::min(best.unplaced_bytes, unplaced_bytes_);
    return;
  }
  if (std::find(placed_on_.begin(), placed_on_.end(), -1) != placed_on_.end()) return;
  const double cost = price();
  if (!best.feasible() || cost < best.cost_ms) {
    best.cost_ms = cost;
    best.unplaced_bytes = 0;
    best.devices = placed_on_;
  }
}

Placement GreedyGridSearch::search(std::span<const PieceType> pieces) {
  double total_columns = 0.0;
  for (const PieceType piece : pieces) {
    total_columns += static_cast<double>(catalog_.num_columns(piece));
  }
  const double mean = total_columns / static_cast<double>(devices_.size());
  const double step = (options_.max_limit - 1.0) / std::max(options_.num_limits - 1, 1);

  Placement best;
  best.cost_ms = std::numeric_limits<double>::infinity();
  best.unplaced_bytes = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < options_.num_limits; ++i) {
    const double limit = mean * (options_.max_limit - step * i) + kLimitTolerance;
    // A limit that the last try stayed below admits every choice it made and keeps out all that
    // its larger limit kept out. A try that failed says nothing else about smaller limits: they
    // lead to other choices.
    if (i > 0 && static_cast<double>(widest_device()) <= limit) continue;
    try_limit(pieces, limit, best);
  }
  // A piece wider than every limit is no reason to have no plan.
  if (!best.feasible()) try_limit(pieces, std::numeric_limits<double>::infinity(), best);
  return best;
}

std::int64_t GreedyGridSearch::widest_device() const {
  std::int64_t widest = 0;
  for (const Device& device : devices_) widest = std::max(widest, device.columns);
  return widest;
}

}  // namespace neuroshard
