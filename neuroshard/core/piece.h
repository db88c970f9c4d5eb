// A piece of a table: the unit that is placed on a device and measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// Columns of one table, wherever in the table they begin: that changes neither cost nor memory. A
/// slice of rows has that share of the table's rows (at least one, rounded) and of its lookups,
/// unless the rows are told: then it has the lookups that these rows have.
struct Piece {
  int table = 0;  ///< index into the tables at hand: a task's, a file's, a set's
  std::int64_t num_columns = 0;
  double row_share = 1.0;  ///< above 0, at most 1
  /// Of a slice of a table with a row order (`has_row_order`): its first row and its rows. 0 rows:
  /// any, or all.
  std::int64_t row_offset = 0;
  std::int64_t num_rows = 0;

  /// By table, then by columns, then by rows. (To clang-tidy 14 the 0 of a defaulted <=> is a
  /// pointer.)
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const Piece&, const Piece&) = default;
};

/// Rows of a slice that has `share` of a table's rows.
[[nodiscard]] inline std::int64_t rows_of_share(std::int64_t num_embeddings, double share) {
  if (share >= 1.0) return num_embeddings;
  return std::max<std::int64_t>(std::llround(static_cast<double>(num_embeddings) * share), 1);
}

/// A cut is at a multiple of this many columns, and no piece is narrower.
inline constexpr std::int64_t kColumnGranularity = 4;

/// True if a table of this dimension may be cut at all. A dimension that is no multiple of 4
/// stays whole.
[[nodiscard]] constexpr bool can_cut(std::int64_t embedding_dim) {
  return embedding_dim % kColumnGranularity == 0 && embedding_dim >= 2 * kColumnGranularity;
}

/// The fewest columns that a piece of a table which is cut may have.
[[nodiscard]] constexpr std::int64_t narrowest_cut(const Table& table) {
  const std::int64_t least = table.min_shard_columns + kColumnGranularity - 1;
  return least < 2 * kColumnGranularity ? kColumnGranularity
                                        : least / kColumnGranularity * kColumnGranularity;
}

/// True if a piece of `num_columns` columns may be cut in two.
[[nodiscard]] constexpr bool can_cut(const Table& table, std::int64_t num_columns) {
  return table.allow.columns && can_cut(table.embedding_dim) &&
         num_columns >= 2 * narrowest_cut(table);
}

/// Columns of a piece's pooled output: its own, once for every feature of the table.
[[nodiscard]] constexpr std::int64_t pooled_columns(const Table& table, std::int64_t num_columns) {
  return num_columns * table.num_features;
}

/// Bytes of one row of a piece: its weights and its share of the optimizer's state (none for SGD;
/// row-wise Adagrad keeps one fp32 per row of each column piece).
[[nodiscard]] constexpr std::int64_t row_bytes(const Table& table, std::int64_t num_columns,
                                               Optimizer optimizer) {
  return num_columns * element_bytes(table.data_type) +
         (optimizer == Optimizer::rowwise_adagrad ? 4 : 0);
}

/// Bytes of a piece of `num_rows` rows on its device, with what it takes beyond its rows.
[[nodiscard]] constexpr std::int64_t shard_bytes(const Table& table, std::int64_t num_columns,
                                                 Optimizer optimizer, std::int64_t num_rows) {
  return num_rows * row_bytes(table, num_columns, optimizer) + table.extra_bytes_per_shard +
         table.extra_bytes_per_column * num_columns;
}

/// The most rows that a piece of at most `bytes` has; possibly none.
[[nodiscard]] constexpr std::int64_t rows_within(std::int64_t bytes, const Table& table,
                                                 std::int64_t num_columns, Optimizer optimizer) {
  const std::int64_t of_rows = bytes - shard_bytes(table, num_columns, optimizer, 0);
  return of_rows > 0 ? of_rows / row_bytes(table, num_columns, optimizer) : 0;
}

/// Of a piece of all rows.
[[nodiscard]] constexpr std::int64_t shard_bytes(const Table& table, std::int64_t num_columns,
                                                 Optimizer optimizer) {
  return shard_bytes(table, num_columns, optimizer, table.num_embeddings);
}

}  // namespace neuroshard
