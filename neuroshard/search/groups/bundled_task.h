// Tables that stay together as one table, for searches that then need not know of groups.
#pragma once

#include <vector>

#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// A task in which each group of tables that stay together (core/table_pins.h) is one table, which
/// cannot be cut: as large as all of them, with pooled outputs as wide, on the devices that all of
/// them permit. It has the place and the name of the group's first table; its rows and columns say
/// nothing. A plan of this task is one of the original, with the same memory and columns.
class BundledTask {
 public:
  /// Keeps a reference to the task, which must be valid.
  explicit BundledTask(const Task& task);

  [[nodiscard]] const Task& task() const { return bundled_; }
  /// The original's tables that each table stands for, rising; one if it is in no group.
  [[nodiscard]] const std::vector<std::vector<int>>& members() const { return members_; }
  /// A plan of this task in the original one, in canonical order.
  [[nodiscard]] ShardingPlan original(const ShardingPlan& plan) const;

 private:
  const Task& original_;
  Task bundled_;
  std::vector<std::vector<int>> members_;
};

}  // namespace neuroshard
