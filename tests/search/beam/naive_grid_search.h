// The greedy grid search that tries every limit from scratch, as a reference for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/beam/greedy_grid_search.h"
#include "neuroshard/search/piece_catalog.h"

namespace neuroshard::testing_search {

/// The algorithm as the paper has it, with nothing remembered between limits.
class NaiveGridSearch {
 public:
  NaiveGridSearch(const Simulator& simulator, const PieceCatalog& catalog,
                  GreedyGridSearchOptions options)
      : simulator_(simulator), catalog_(catalog), options_(options) {}

  Placement search(const std::vector<PieceType>& pieces) {
    best_ = {};
    best_.cost_ms = std::numeric_limits<double>::infinity();
    best_.unplaced_bytes = std::numeric_limits<std::int64_t>::max();
    double columns = 0.0;
    double partial_bytes = 0.0;
    for (const PieceType piece : pieces) {
      columns += static_cast<double>(width(piece));
      partial_bytes += catalog_.partial_bytes(piece);
    }
    partial_sums_ms_ = simulator_.partial_sums_ms(partial_bytes);
    const double mean = columns / simulator_.task().topology.world_size;
    for (int i = 0; i < options_.num_limits; ++i) {
      const double share = static_cast<double>(i) / std::max(options_.num_limits - 1, 1);
      const double limit = options_.max_limit + share * (1.0 - options_.max_limit);
      try_limit(pieces, mean * limit + 1e-6);
    }
    if (!best_.feasible()) try_limit(pieces, std::numeric_limits<double>::infinity());
    return best_;
  }

 private:
  [[nodiscard]] std::int64_t width(PieceType piece) const { return catalog_.pooled_columns(piece); }

  void try_limit(const std::vector<PieceType>& pieces, double limit) {
    const int world_size = simulator_.task().topology.world_size;
    states_.assign(world_size, std::vector<double>(catalog_.state_size(), 0.0));
    bytes_.assign(world_size, 0);
    columns_.assign(world_size, 0.0);
    Placement placement;
    bool all_placed = true;
    for (const PieceType piece : pieces) {
      const int device = cheapest(piece, limit);
      placement.devices.push_back(device);
      if (device >= 0) continue;
      all_placed = false;
      placement.unplaced_bytes += has_memory(piece) ? 0 : catalog_.bytes(piece);
      if (placement.unplaced_bytes == 0) return;  // only the limit prevents it
    }
    if (placement.unplaced_bytes > 0) {
      best_.unplaced_bytes = std::min(best_.unplaced_bytes, placement.unplaced_bytes);
    } else if (all_placed) {
      placement.cost_ms = price();
      if (!best_.feasible() || placement.cost_ms < best_.cost_ms) best_ = placement;
    }
  }

  [[nodiscard]] bool fits(PieceType piece, std::size_t device) const {
    return bytes_[device] + catalog_.bytes(piece) <=
           simulator_.task().topology.memory_bytes[device];
  }

  [[nodiscard]] bool has_memory(PieceType piece) const {
    for (std::size_t d = 0; d < bytes_.size(); ++d) {
      if (fits(piece, d)) return true;
    }
    return false;
  }

  /// The device of lowest cost so far that has room, the first of equal ones; takes the piece.
  int cheapest(PieceType piece, double limit) {
    int best = -1;
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < states_.size(); ++d) {
      if (!fits(piece, d) || columns_[d] + static_cast<double>(width(piece)) > limit) continue;
      const double cost = simulator_.compute().cost(states_[d]);
      if (cost >= lowest) continue;
      lowest = cost;
      best = static_cast<int>(d);
    }
    if (best >= 0) {
      for (std::size_t i = 0; i < catalog_.state_size(); ++i) {
        states_[best][i] += catalog_.contribution(piece)[i];
      }
      bytes_[best] += catalog_.bytes(piece);
      columns_[best] += static_cast<double>(width(piece));
    }
    return best;
  }

  double price() {
    std::vector<double> compute_ms;
    for (const auto& state : states_) compute_ms.push_back(simulator_.compute().cost(state));
    return simulator_.combine(compute_ms, columns_, 0.0, partial_sums_ms_).cost_ms;
  }

  const Simulator& simulator_;
  const PieceCatalog& catalog_;
  GreedyGridSearchOptions options_;
  Placement best_;
  double partial_sums_ms_ = 0.0;
  std::vector<std::vector<double>> states_;
  std::vector<std::int64_t> bytes_;
  std::vector<double> columns_;
};

}  // namespace neuroshard::testing_search
