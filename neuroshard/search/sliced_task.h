// The tables that a plan leaves to the search within columns: slices of rows as tables of their
// own, without those that are on every device.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/cost/simulator.h"

namespace neuroshard {

/// A task on the same devices whose tables are the slices of rows of a plan, those of all rows
/// among them: each with the columns that the plan has of these rows. A plan of that task is one of
/// the original, where slices stay slices and tables of all rows may be cut further, on the devices
/// that their tables may lie on. Replicated tables are no tables there: their memory is taken from
/// the devices', their cost added to each device's.
class SlicedTask {
 public:
  /// Keeps what it needs of both. The plan must be valid.
  SlicedTask(const Simulator& simulator, const ShardingPlan& plan);

  [[nodiscard]] const Simulator& simulator() const { return simulator_; }
  /// The given plan, in this task.
  [[nodiscard]] const ShardingPlan& plan() const { return plan_; }
  /// A plan of this task in the original one, in canonical order.
  [[nodiscard]] ShardingPlan original(const ShardingPlan& plan) const;

 private:
  struct Columns {
    std::int64_t offset = 0;
    std::int64_t count = 0;
  };
  struct Slice {
    int table = 0;  ///< of the original task
    std::int64_t row_offset = 0;
    std::int64_t num_rows = 0;       ///< 0: all
    std::vector<Columns> columns{};  ///< those that the plan has of these rows, rising
  };

  static std::vector<Slice> slices_of(const ShardingPlan& plan);
  [[nodiscard]] static Simulator simulator_of(const Simulator& original, const ShardingPlan& plan,
                                              const std::vector<Slice>& slices);

  std::vector<Slice> slices_;
  std::vector<int> replicated_tables_;
  Simulator simulator_;
  ShardingPlan plan_;
};

}  // namespace neuroshard
