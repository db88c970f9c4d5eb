// A table whose row order is known: how its rows are used, and what they cost.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "neuroshard/core/table.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/workload/reuse/access_by_row.h"

namespace neuroshard {

/// What its functions return is found out when it is first asked for, by whichever thread, as only
/// slices of rows need it.
class OrderedRows {
 public:
  /// Of a table with a row order (`has_row_order`), its statistics, and what prices its pieces.
  OrderedRows(Table table, TableStatistics statistics,
              std::shared_ptr<const ComputeCostModel> compute, const OperatorSettings& settings);

  /// The first time, a tenth of a millisecond; of many measured points some milliseconds.
  [[nodiscard]] const AccessByRow& accesses() const;

  /// What the lookups of the rows cost, to cut slices that cost as much as each other: rows that
  /// are rarely hit cost more for each lookup. Of blocks of rows with equal shares of the accesses,
  /// what a device pays for one more like it (16 pieces are encoded and 32 states priced); the
  /// accesses where the model says nothing usable.
  [[nodiscard]] const RowWeights& costs() const;

 private:
  Table table_;
  TableStatistics statistics_;
  std::shared_ptr<const ComputeCostModel> compute_;
  OperatorSettings settings_;
  mutable std::once_flag accesses_once_;
  mutable std::optional<AccessByRow> accesses_;
  mutable std::once_flag costs_once_;
  mutable std::optional<RowWeights> costs_;
};

}  // namespace neuroshard
