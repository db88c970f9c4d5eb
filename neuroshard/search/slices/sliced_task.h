// The tables that a plan leaves to the search within columns: slices of rows as tables of their
// own, without those that are on every device, and other ways of cutting rows.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/cost/simulator.h"
#include "neuroshard/search/improve/slicings.h"

namespace neuroshard {

/// A task on the same devices whose tables are the slices of rows of a plan, those of all rows
/// among them: each with the columns that the plan has of these rows. A plan of that task is one of
/// the original, where slices stay slices and tables of all rows may be cut further, on the devices
/// that their tables may lie on. Replicated tables are no tables there: their memory is taken from
/// the devices', their cost added to each device's.
class SlicedTask {
 public:
  /// Keeps what it needs of both. The plan must be valid. Throws TimeIsOver.
  SlicedTask(const Simulator& simulator, const ShardingPlan& plan, const StopClock& clock = {});

  /// Likewise; and the rows of the `num_choices` costliest tables that may be cut in rows, in 1, 2,
  /// 3, 4, 6, ... slices that cost the same and in some that do not, are further tables, of which
  /// the given plan has no columns: `slicings` says which take the place of which.
  SlicedTask(const Simulator& simulator, const ShardingPlan& plan, int num_choices,
             const StopClock& clock = {});

  [[nodiscard]] const Simulator& simulator() const { return simulator_; }
  [[nodiscard]] const Slicings& slicings() const { return slicings_; }
  /// The given plan, in this task.
  [[nodiscard]] const ShardingPlan& plan() const { return plan_; }
  /// The part of the original task's tables that a table of this one stands for, on no device.
  [[nodiscard]] Shard part(int table) const {
    const Slice& slice = slices_[table];
    return {slice.table, slice.column_offset, slice.num_columns,
            -1,          slice.row_offset,    slice.num_rows};
  }
  /// A plan of this task, with one way of each of the slicings, in the original one, in canonical
  /// order.
  [[nodiscard]] ShardingPlan original(const ShardingPlan& plan) const;

 private:
  /// Rows of a table and columns that are neighbours: those of a piece must be, or it would be two
  /// in the original, which cost and need more.
  struct Slice {
    int table = 0;  ///< of the original task
    std::int64_t row_offset = 0;
    std::int64_t num_rows = 0;  ///< 0: all
    std::int64_t column_offset = 0;
    std::int64_t num_columns = 0;
    int way_size = 0;  ///< slices of its way of cutting rows, each of all columns; 0: the plan's

    [[nodiscard]] bool is_same_part(const Slice& other) const {
      return table == other.table && row_offset == other.row_offset && num_rows == other.num_rows &&
             column_offset == other.column_offset && num_columns == other.num_columns;
    }
  };

  /// By table, and then by their rows.
  static std::vector<Slice> slices_of(const ShardingPlan& plan);
  /// Adds the slices of other ways of cutting the tables, and to `slicings` which they are.
  static std::vector<Slice> with_choices(std::vector<Slice> slices, const Simulator& simulator,
                                         int num_choices, const StopClock& clock,
                                         Slicings& slicings);
  /// Each slice's part of partial sums, of each column, which other slices of the plan may have
  /// fewer or more of. Throws TimeIsOver.
  [[nodiscard]] static std::vector<double> partial_bytes_per_column(
      const Simulator& original, const std::vector<Slice>& slices, const StopClock& clock);
  [[nodiscard]] static Simulator simulator_of(const Simulator& original, const ShardingPlan& plan,
                                              const std::vector<Slice>& slices,
                                              const StopClock& clock);

  Slicings slicings_;
  std::vector<Slice> slices_;
  std::vector<int> replicated_tables_;
  Simulator simulator_;
  ShardingPlan plan_;
};

}  // namespace neuroshard
