// The work that a piece of a table is for the fused operator, counted in bytes, cache lines,
// lookups and launches: what a physical estimate is a weighted sum of, and what networks see.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// Caches of these sizes are looked at, whatever the machine has: a fit decides which of them
/// count.
inline constexpr std::array<double, 5> kCacheBytes{0x1p15, 0x1p18, 0x1p21, 0x1p25, 0x1p28};

/// Quantities of one piece. None of them falls when the batch or the pooling factor grows at the
/// same distribution of the accesses, nor when 16 columns are added or the columns are doubled.
struct PieceWork {
  double batch_size = 0.0;
  double lookups = 0.0;
  double distinct_rows = 0.0;
  double hottest_row_hits = 0.0;
  /// rows_hit[i]: distinct rows that are hit more than 2^(i-1) times; rows_hit[0]: all of them.
  std::array<double, kReuseBins> rows_hit{};
  double row_bytes = 0.0;
  double row_lines = 0.0;           ///< mean cache lines that a row touches
  double vector_operations = 0.0;   ///< that one row takes, 16 columns at a time and then fewer
  double gradient_row_bytes = 0.0;  ///< that a lookup reads: its own feature's columns, fp32
  double output_bytes = 0.0;        ///< of the pooled output of the whole batch, fp32
  double table_bytes = 0.0;
  /// Lookups of rows that are not among the hottest ones which fill a cache of that size.
  std::array<double, kCacheBytes.size()> uncached_lookups{};
  /// Cache lines of gradient that lookups read beyond what a cache of that size holds.
  std::array<double, kCacheBytes.size()> uncached_gradient_lines{};
};

[[nodiscard]] PieceWork piece_work(const TableStatistics& table, std::int64_t num_columns,
                                   const OperatorSettings& settings);

/// Mean cache lines that a row of `row_bytes` bytes touches: rows lie one after the other from the
/// start of a line, so a row starts, equally often, at each multiple of gcd(row bytes, line) in a
/// line. Rows of a whole number of lines never straddle; rows of 160 bytes touch 3 lines, not 2.5.
[[nodiscard]] double mean_row_lines(std::int64_t row_bytes);

/// The kinds of work that a physical estimate weighs, in order.
[[nodiscard]] const std::vector<std::string_view>& work_terms();

/// Writes how much of each kind the piece is; `terms` has work_terms().size() elements, all >= 0.
void write_work_terms(const PieceWork& work, const TableStatistics& table,
                      const OperatorSettings& settings, std::span<double> terms);

}  // namespace neuroshard
