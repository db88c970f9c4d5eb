// A table's rows, in order of popularity, in pieces of equally or nearly equally popular ones.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// Consecutive ranks, 0 being the most popular row, proposed with equal probability. A proposed
/// rank is kept with probability ((first + 1) / (rank + 1))^exponent, exponent being the zipf
/// exponent; always, where rows are equally popular.
struct RankPiece {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  double weight = 0.0;  ///< number of rows * weight of the first
  /// The lowest probability of being kept, in units of 2^-64; all ones: always.
  std::uint64_t always_kept_below = ~std::uint64_t{0};
};

/// Pieces of a table with this distribution; piecewise uniform and uniform ones are exact, those of
/// a power law are so short that proposals are kept with a probability of 97 % or more (82 % for
/// an exponent of 10).
[[nodiscard]] std::vector<RankPiece> rank_pieces(const IndexDistribution& distribution,
                                                 std::int64_t num_embeddings);

}  // namespace neuroshard
