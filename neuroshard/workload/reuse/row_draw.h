// Drawing one row: the same code for batches drawn on the CPU and on a GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

#include "neuroshard/workload/reuse/alias_table.h"
#include "neuroshard/workload/reuse/rank_pieces.h"
#include "neuroshard/workload/reuse/wide_product.h"

namespace neuroshard {

/// The fixed bijection rank -> (rank * multiplier + offset) modulo the number of rows: `seed` says
/// where rank 0 lies, and the next ranks lie evenly over all rows.
class RankScatter {
 public:
  RankScatter(std::uint64_t num_rows, std::uint64_t seed)
      : num_rows_(num_rows), inverse_(~std::uint64_t{0} / num_rows), offset_(seed % num_rows) {
    // The golden ratio of the rows, as far as a product with a rank and the sum fit 64 bits: up to
    // 3 * 10^9 rows. Beyond, the next ranks lie closer together.
    const auto rows = static_cast<double>(num_rows);
    const double range = std::min(rows, 0x1p63 / rows);
    multiplier_ = static_cast<std::uint64_t>(range * (std::numbers::phi - 1.0)) | 1;
    while (std::gcd(multiplier_, num_rows) != 1) multiplier_ += 2;
  }

  /// Ranks are rows.
  [[nodiscard]] static RankScatter identity(std::uint64_t num_rows) {
    RankScatter scatter(num_rows, 0);
    scatter.multiplier_ = 1;
    return scatter;
  }

  [[nodiscard]] constexpr std::int64_t operator()(std::uint64_t rank) const {
    const std::uint64_t product = rank * multiplier_ + offset_;
    // Barrett reduction: the quotient estimate is exact or one too small.
    const std::uint64_t quotient = wide_product(product, inverse_).high;
    const std::uint64_t remainder = product - quotient * num_rows_;
    return static_cast<std::int64_t>(remainder >= num_rows_ ? remainder - num_rows_ : remainder);
  }

 private:
  std::uint64_t num_rows_;
  std::uint64_t inverse_;
  std::uint64_t multiplier_ = 1;
  std::uint64_t offset_;
};

/// Consecutive rows that are scattered among themselves: their ranks are their numbers.
struct RowSegment {
  std::uint64_t first = 0;
  RankScatter scatter;
};

/// A table's access distribution as plain arrays, in the memory of whoever draws.
struct RowDistribution {
  const RankPiece* pieces;
  const AliasTable::Slot* slots;  ///< which piece
  std::uint64_t num_pieces;
  RankScatter scatter;
  double exponent;
  const RowSegment* segments = nullptr;  ///< rising; none: all ranks are scattered over the table
  std::uint64_t num_segments = 0;

  [[nodiscard]] constexpr std::int64_t row_of(std::uint64_t rank) const {
    if (num_segments == 0) return scatter(rank);
    std::uint64_t low = 0;  // the last segment that does not begin after the rank
    for (std::uint64_t end = num_segments; end - low > 1;) {
      const std::uint64_t middle = low + (end - low) / 2;
      (segments[middle].first <= rank ? low : end) = middle;
    }
    const RowSegment& segment = segments[low];
    return static_cast<std::int64_t>(segment.first) + segment.scatter(rank - segment.first);
  }
};

/// A piece of ranks by the alias table, a rank in it, and the rank's row. `bits()` gives 64
/// uniformly random bits.
template <class Bits>
[[nodiscard]] constexpr std::int64_t draw_row(const RowDistribution& distribution, Bits& bits) {
  for (;;) {
    const RankPiece& piece =
        distribution
            .pieces[AliasTable::choose(distribution.slots, distribution.num_pieces, bits())];
    const WideProduct product = wide_product(bits(), piece.count);
    const std::uint64_t rank = piece.first + product.high;
    const std::uint64_t coin = product.low;
    if (coin <= piece.always_kept_below) return distribution.row_of(rank);
    const double ratio = static_cast<double>(piece.first + 1) / static_cast<double>(rank + 1);
    if (static_cast<double>(coin) * 0x1p-64 < std::pow(ratio, distribution.exponent)) {
      return distribution.row_of(rank);
    }
  }
}

}  // namespace neuroshard
