// What the training data of a computation model covers; beyond it predictions are extrapolations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/task.h"
#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

struct TrainedRange {
  std::int64_t min_batch_size = 0, max_batch_size = 0;
  std::int64_t min_columns = 0, max_columns = 0;              ///< of a piece
  std::int64_t min_embeddings = 0, max_embeddings = 0;        ///< of a table or a slice of its rows
  double min_pooling_factor = 0.0, max_pooling_factor = 0.0;  ///< likewise
  /// Mean lookups of a distinct row in a batch, at the most.
  double max_hits_per_row = 0.0;
  int max_pieces = 0;  ///< on a device
  std::vector<Optimizer> optimizers;
  std::vector<DataType> data_types;
};

/// Whether this mean number of lookups of a distinct row is above what was trained on.
[[nodiscard]] bool has_more_hits(const TrainedRange& range, double hits_per_row);

/// The smallest range that has both.
[[nodiscard]] TrainedRange joined(const TrainedRange& left, const TrainedRange& right);

/// Why predictions for this task are extrapolations: one line per kind of reason, naming every
/// table (of many, the first ones) that it applies to. Empty if they are not. `statistics` are
/// table_statistics(task), if they are known; of many tables they take a while.
[[nodiscard]] std::vector<std::string> reasons_outside(
    const TrainedRange& range, const Task& task, std::span<const TableStatistics> statistics = {});

/// A piece of a plan, in what its table does not tell of it.
struct PlannedPiece {
  const Table* table = nullptr;
  int device = 0;  ///< from 0
  std::int64_t num_columns = 0;
  double hits_per_row = 0.0;  ///< of a slice of rows: mean lookups of a distinct row; 0: no slice
};

/// Likewise why predictions for these pieces are, whatever is said of their tables: a device with
/// more pieces than were trained on; pieces that are too narrow, of tables that are not; and slices
/// with more lookups of a distinct row. A table's pieces must follow each other.
[[nodiscard]] std::vector<std::string> reasons_outside(const TrainedRange& range,
                                                       std::span<const PlannedPiece> pieces);

}  // namespace neuroshard
