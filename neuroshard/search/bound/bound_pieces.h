// Which pieces of a task's tables the lower bound looks at, and which tables it cannot price.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// Pieces of a table: each number of quanta, times each share of the rows.
struct PiecesOfTable {
  std::int64_t quantum = 0;          ///< columns that pieces have multiples of
  std::int64_t num_quanta = 0;       ///< of the table; 0: no piece is looked at
  std::vector<double> row_shares{};  ///< that a slice may have, rising; the last is 1
};

/// The work of looking at pieces. It is counted, not timed, so that bounds are the same everywhere.
class BoundWork {
 public:
  /// Of a task without groups, whose tables allow the cuts that they may have.
  BoundWork(const Task& task, const Cuts& cuts);

  /// The pieces of a table, whose work is taken from what is left: all that the cuts and the task
  /// allow, or none, where there is less work left, the table is too wide, or its rows may be cut
  /// and have a known order.
  [[nodiscard]] PiecesOfTable pieces_of(const Table& table);

 private:
  const Task& task_;
  Cuts cuts_;
  std::int64_t divisions_;  ///< of columns
  std::int64_t slices_;     ///< of rows
};

/// Tables that count in a lower bound with their communication and memory alone.
struct UnpricedTables {
  std::int64_t ordered = 0;  ///< whose row order is known, and rows may be cut
  std::int64_t others = 0;   ///< too wide, or beyond the work that there is

  friend bool operator==(const UnpricedTables&, const UnpricedTables&) = default;
};

/// Those of the bound of all plans with these cuts. The task must be valid.
[[nodiscard]] UnpricedTables unpriced_tables(const Task& task, const Cuts& cuts);

/// Whether a valid plan has a slice of rows, of a table without a row order, that the bound's
/// shares do not have: plans with such slices may cost less than it.
[[nodiscard]] bool has_other_slices(const Task& task, const ShardingPlan& plan);

}  // namespace neuroshard
