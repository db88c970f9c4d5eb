// The least memory that a task's tables need, as far as it is known without looking for a plan.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/core/numbers/byte_sum.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/stop_clock.h"
#include "neuroshard/search/memory/pinned_memory.h"

namespace neuroshard {

/// How narrow a table's widest piece can be [columns]: 4, unless pieces have to be wider. Of 20
/// columns in pieces of 8 or more, it has 12.
[[nodiscard]] std::int64_t narrowest_columns(const Table& table);

/// The most columns, at most `limit`, of a piece of at most `bytes`; 0 if no piece is that small.
[[nodiscard]] std::int64_t widest_piece(const Table& table, std::int64_t limit, std::int64_t bytes,
                                        Optimizer optimizer);

/// The memory that a task needs at the least and that its devices have, in bytes. Sums over tables
/// or devices are exact, however large.
struct LeastMemory {
  std::int64_t necessary_cuts = 0;  ///< of columns of tables larger than the largest device
  /// All tables with no more than the necessary cuts, as every piece of columns has optimizer state
  /// of its own: the least that any plan can need.
  WideBytes needed = 0;
  WideBytes optimizer_state = 0;    ///< the optimizer's part of `needed`
  WideBytes available = 0;          ///< sum over the devices
  std::int64_t largest_device = 0;  ///< the largest capacity

  /// The largest of the pieces that cannot be cut further; a group of tables that stay together is
  /// one, and has the number of its first table.
  int largest_piece_table = 0;
  std::int64_t largest_piece_columns = 0;
  std::int64_t largest_piece_rows = 0;
  std::int64_t largest_piece = 0;

  /// Pinned tables that cannot fit where they may lie, if the task has such.
  std::optional<PinnedShortage> shortage;

  /// Whether this alone shows that no plan fits.
  [[nodiscard]] bool is_too_much() const {
    return needed > available || largest_piece > largest_device || shortage.has_value();
  }
};

/// Of a task whose tables stay with none; rows are cut too where `rows` says so. Where the time is
/// over, a shortage of pinned tables may be left out that takes long to find.
[[nodiscard]] LeastMemory least_memory(const Task& task, bool rows, const StopClock& clock = {});

}  // namespace neuroshard
