// Batches drawn on the device: where every bag begins in closed form, and every lookup's row from a
// generator of its own, so that any thread can draw any of them.
#pragma once

#include <cmath>
#include <cstdint>

#include "neuroshard/core/numbers/random.h"
#include "neuroshard/workload/reuse/row_draw.h"

namespace neuroshard::cuda {

/// The lengths of a table's bags: its pooling factor rounded down or up, as evenly spread over the
/// batch as whole numbers can be, from a random phase. So the number of lookups is known to the
/// host before anything is drawn.
struct BagLengths {
  std::int64_t whole = 0;
  std::uint64_t fraction = 0;  ///< in 2^-32
  std::uint64_t phase = 0;     ///< likewise, below 1

  [[nodiscard]] constexpr std::int64_t offset(std::int64_t bag) const {
    const auto count = static_cast<std::uint64_t>(bag);
    return bag * whole + static_cast<std::int64_t>((count * fraction + phase) >> 32);
  }
  [[nodiscard]] constexpr std::int64_t longest() const { return whole + (fraction > 0 ? 1 : 0); }
};

[[nodiscard]] inline BagLengths bag_lengths(double pooling_factor, std::uint64_t random_bits) {
  const double whole = std::floor(pooling_factor);
  return {static_cast<std::int64_t>(whole),
          static_cast<std::uint64_t>(std::llround((pooling_factor - whole) * 0x1p32)),
          random_bits >> 32};
}

/// 64 random bits after another for one of many streams of a seed.
class CounterBits {
 public:
  constexpr CounterBits(std::uint64_t seed, std::uint64_t stream)
      : state_(mix64(seed ^ mix64(stream))) {}
  constexpr std::uint64_t operator()() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }

 private:
  std::uint64_t state_;
};

/// One table's part of a batch to be drawn.
struct DrawPlan {
  RowDistribution rows;  ///< arrays in device memory
  BagLengths lengths;
  std::uint64_t seed = 0;
  /// Rows r, r + num_rows, ... lie at the same place: what of the table fits into the arena.
  std::int64_t num_rows = 0;
  std::int64_t num_lookups = 0;
  std::int64_t first_block = 0;
  std::int64_t* indices = nullptr;
  std::int64_t* offsets = nullptr;
};

/// Lookups that one block draws.
inline constexpr std::int64_t kDrawsPerBlock = 1024;

[[nodiscard]] constexpr std::int64_t draw_lookup(const DrawPlan& plan, std::int64_t lookup) {
  CounterBits bits(plan.seed, static_cast<std::uint64_t>(lookup));
  return draw_row(plan.rows, bits) % plan.num_rows;
}

}  // namespace neuroshard::cuda
