// Comparing a task with what a model was trained on.
#include "neuroshard/cost/compute/trained_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "neuroshard/core/piece.h"
#include "neuroshard/core/text/name_list.h"
#include "neuroshard/core/units.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

/// Tables of one kind of reason that are named; the others are counted.
constexpr std::size_t kMostNames = 5;
/// Ranges of real numbers are met up to this factor: samples of a space that ends at 500 end at
/// 499.5 or so, and over a hundredth a prediction changes by less than its error.
constexpr double kRangeSlack = 1.01;

template <typename T>
bool contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::string hits_text(const TrainedRange& range, double hits) {
  return fmt::format("lookups per distinct row: trained on at most {:.4g}, got {:.4g}",
                     range.max_hits_per_row, hits);
}

/// "tables: trained on at most 40 pieces on a device", of a task and of a plan alike.
std::string pieces_text(const TrainedRange& range) {
  return fmt::format("tables: trained on at most {} on a device",
                     format_count(range.max_pieces, "piece"));
}

/// One kind of reason and the tables that it applies to.
class TableReason {
 public:
  /// Counts a table once, if its pieces follow each other.
  void add(const Table& table, std::string what) {
    if (names_.empty()) what_ = std::move(what);
    std::string name = fmt::format("\"{}\"", table.name);
    if (names_.empty() || names_.back() != name) names_.push_back(std::move(name));
  }

  void write_to(std::vector<std::string>& reasons) const {
    if (names_.empty()) return;
    reasons.push_back(fmt::format("{} ({})", what_, name_list(names_, kMostNames)));
  }

 private:
  std::string what_;                ///< of the first table
  std::vector<std::string> names_;  ///< quoted
};

class TableReasons {
 public:
  explicit TableReasons(const TrainedRange& range) : range_(range) {}

  void examine(const Table& table, double lookups, double distinct_rows) {
    examine_columns(table);
    if (table.num_embeddings < range_.min_embeddings ||
        table.num_embeddings > range_.max_embeddings) {
      rows_.add(table,
                fmt::format("num_embeddings: trained on {} to {}, got {}", range_.min_embeddings,
                            range_.max_embeddings, table.num_embeddings));
    }
    if (table.pooling_factor * kRangeSlack < range_.min_pooling_factor ||
        table.pooling_factor > range_.max_pooling_factor * kRangeSlack) {
      pooling_.add(table, fmt::format("pooling_factor: trained on {:.4g} to {:.4g}, got {:.6g}",
                                      range_.min_pooling_factor, range_.max_pooling_factor,
                                      table.pooling_factor));
    }
    const double hits = lookups / std::max(distinct_rows, 1e-9);
    if (lookups > 1.0 && has_more_hits(range_, hits)) {
      hits_.add(table, hits_text(range_, hits));
    }
    if (!contains(range_.data_types, table.data_type)) {
      types_.add(table, fmt::format("data_type: not trained on {}", to_string(table.data_type)));
    }
  }

  void write_to(std::vector<std::string>& reasons) const {
    for (const TableReason* reason : {&columns_, &rows_, &pooling_, &hits_, &types_}) {
      reason->write_to(reasons);
    }
  }

 private:
  void examine_columns(const Table& table) {
    const bool too_wide = table.embedding_dim > range_.max_columns;
    const bool too_narrow = table.embedding_dim < range_.min_columns;
    if (!too_wide && !too_narrow) return;
    const bool cut = too_wide && can_cut(table.embedding_dim);
    columns_.add(table, fmt::format("embedding_dim: trained on {}{} to {} columns, got {}",
                                    cut ? "pieces of " : "", range_.min_columns, range_.max_columns,
                                    table.embedding_dim));
  }

  const TrainedRange& range_;
  TableReason columns_;
  TableReason rows_;
  TableReason pooling_;
  TableReason hits_;
  TableReason types_;
};

}  // namespace

bool has_more_hits(const TrainedRange& range, double hits_per_row) {
  return hits_per_row > range.max_hits_per_row * kRangeSlack;
}

TrainedRange joined(const TrainedRange& left, const TrainedRange& right) {
  TrainedRange range = left;
  range.min_batch_size = std::min(left.min_batch_size, right.min_batch_size);
  range.max_batch_size = std::max(left.max_batch_size, right.max_batch_size);
  range.min_columns = std::min(left.min_columns, right.min_columns);
  range.max_columns = std::max(left.max_columns, right.max_columns);
  range.min_embeddings = std::min(left.min_embeddings, right.min_embeddings);
  range.max_embeddings = std::max(left.max_embeddings, right.max_embeddings);
  range.min_pooling_factor = std::min(left.min_pooling_factor, right.min_pooling_factor);
  range.max_pooling_factor = std::max(left.max_pooling_factor, right.max_pooling_factor);
  range.max_hits_per_row = std::max(left.max_hits_per_row, right.max_hits_per_row);
  range.max_pieces = std::max(left.max_pieces, right.max_pieces);
  const auto add = [](auto& values, const auto& others) {
    for (const auto& value : others) {
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  };
  add(range.optimizers, right.optimizers);
  add(range.data_types, right.data_types);
  return range;
}

std::vector<std::string> reasons_outside(const TrainedRange& range, const Task& task,
                                         std::span<const TableStatistics> statistics) {
  std::vector<std::string> reasons;
  if (task.batch_size < range.min_batch_size || task.batch_size > range.max_batch_size) {
    reasons.push_back(fmt::format("batch_size: trained on {} to {}, got {}", range.min_batch_size,
                                  range.max_batch_size, task.batch_size));
  }
  if (!contains(range.optimizers, task.optimizer)) {
    reasons.push_back(fmt::format("optimizer: not trained on {}", to_string(task.optimizer)));
  }
  const auto devices = static_cast<std::size_t>(task.topology.world_size);
  const std::size_t pieces = (task.tables.size() + devices - 1) / devices;
  if (range.max_pieces > 0 && pieces > static_cast<std::size_t>(range.max_pieces)) {
    reasons.push_back(
        fmt::format("{}, got {} for {}", pieces_text(range),
                    format_count(static_cast<std::int64_t>(task.tables.size()), "table"),
                    format_count(task.topology.world_size, "device")));
  }
  TableReasons of_tables(range);
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const Table& table = task.tables[t];
    const double distinct_rows = statistics.empty()
                                     ? reuse_statistics(table, task.batch_size).distinct_rows
                                     : statistics[t].distinct_rows;
    of_tables.examine(table, static_cast<double>(task.batch_size) * table.pooling_factor,
                      distinct_rows);
  }
  of_tables.write_to(reasons);
  return reasons;
}

std::vector<std::string> reasons_outside(const TrainedRange& range,
                                         std::span<const PlannedPiece> pieces) {
  std::vector<int> counts;  // of each device
  TableReason columns;
  TableReason hits;
  for (const PlannedPiece& piece : pieces) {
    const auto device = static_cast<std::size_t>(piece.device);
    if (device >= counts.size()) counts.resize(device + 1);
    ++counts[device];
    if (piece.num_columns < range.min_columns && piece.table->embedding_dim >= range.min_columns) {
      columns.add(*piece.table,
                  fmt::format("columns of a piece: trained on {} to {}, got {}", range.min_columns,
                              range.max_columns, piece.num_columns));
    }
    if (has_more_hits(range, piece.hits_per_row)) {
      hits.add(*piece.table, hits_text(range, piece.hits_per_row));
    }
  }
  std::vector<std::string> reasons;
  const auto most = std::max_element(counts.begin(), counts.end());
  if (range.max_pieces > 0 && most != counts.end() && *most > range.max_pieces) {
    reasons.push_back(
        fmt::format("{}, got {} on device {}", pieces_text(range), *most, most - counts.begin()));
  }
  columns.write_to(reasons);
  hits.write_to(reasons);
  return reasons;
}

}  // namespace neuroshard
