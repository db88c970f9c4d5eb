// A limit on the bytes that a plan moves, for searches that know how many columns of a table lie on
// a device, but not which.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/search/replan/placed_before.h"

namespace neuroshard {

/// What a table of the task at hand stands for: the parts of the original task's tables, on no
/// device yet. One part, of whose columns a piece has some; or several whole tables, which stay
/// together.
using TableOrigin = std::vector<Shard>;

/// Bytes that a shard of a table that stands for `origin` moves.
[[nodiscard]] std::int64_t moved_bytes(const PlacedBefore& before, const TableOrigin& origin,
                                       const Shard& shard);

/// Columns of a table on a device.
struct TablePart {
  int device = 0;
  std::int64_t num_columns = 0;

  friend bool operator==(const TablePart&, const TablePart&) = default;
};

/// Immutable; threads may share it.
class MoveLimit {
 public:
  /// Plans of the task at hand, whose tables stand for `origins`, may move `limit_bytes`. Keeps a
  /// reference to `before`.
  MoveLimit(const PlacedBefore& before, std::vector<TableOrigin> origins, std::int64_t limit_bytes)
      : before_(before), origins_(std::move(origins)), limit_bytes_(limit_bytes) {}

  [[nodiscard]] std::int64_t limit_bytes() const { return limit_bytes_; }
  [[nodiscard]] std::size_t num_tables() const { return origins_.size(); }

  /// Puts a table's parts, by device, into the order of columns in which they move little: devices
  /// that held some of it in the order of what they held, the others between them where the least
  /// is moved. The bytes that they then move.
  std::int64_t arrange(int table, std::vector<TablePart>& parts) const;

  /// A plan of the task at hand with each table's pieces in that order of columns.
  [[nodiscard]] ShardingPlan arranged(const ShardingPlan& plan) const;

  /// Devices that held some of a table's part, with the columns, in the order of these columns.
  [[nodiscard]] std::vector<TablePart> held(int table) const;

 private:
  /// Of a piece of the table at hand.
  [[nodiscard]] std::int64_t moved_by(int table, std::int64_t column_offset,
                                      const TablePart& part) const {
    return moved_bytes(before_, origins_[table],
                       {table, column_offset, part.num_columns, part.device});
  }
  /// The first column of the table at hand that the device held; negative: it held none.
  [[nodiscard]] std::int64_t first_column(int table, int device) const;

  const PlacedBefore& before_;
  std::vector<TableOrigin> origins_;
  std::int64_t limit_bytes_;
};

/// Columns that went to a device, or left it if negative.
struct ColumnChange {
  int table = 0;
  std::int64_t num_columns = 0;
  int device = 0;
};

/// What a plan that is being changed moves.
class MoveLedger {
 public:
  /// Keeps a reference to the limit; `plan` is of its task.
  MoveLedger(const MoveLimit& limit, const ShardingPlan& plan);

  /// The bytes that the plan would move after these changes.
  [[nodiscard]] std::int64_t moved_with(std::span<const ColumnChange> changes);
  /// Makes the changes that `moved_with` was last asked for.
  void commit();

  [[nodiscard]] std::int64_t moved_bytes() const { return saturated(moved_bytes_); }
  [[nodiscard]] std::int64_t moved_bytes(int table) const { return tables_[table].moved_bytes; }
  [[nodiscard]] const MoveLimit& limit() const { return limit_; }

 private:
  struct TableState {
    std::vector<TablePart> parts;  ///< by device
    std::int64_t moved_bytes = 0;
  };
  struct Candidate {
    int table;
    TableState state;
  };

  const MoveLimit& limit_;
  std::vector<TableState> tables_;
  WideBytes moved_bytes_ = 0;
  std::vector<Candidate> candidates_;
  std::size_t num_candidates_ = 0;  ///< of `candidates_`, which keeps its memory
  std::vector<int> candidate_of_;   ///< by table; -1: none
  WideBytes candidate_bytes_ = 0;
  std::vector<TablePart> scratch_;
};

}  // namespace neuroshard
