// Tables in memory with values that every process can compute, for runs whose values are checked.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard {

/// Number `number` of a stream of values: eighths from -1 to 7/8, so that sums are exact.
[[nodiscard]] float known_value(std::uint64_t stream, std::int64_t number);
/// The stream of a table for one use: its weights, an iteration's batch or gradients.
[[nodiscard]] std::uint64_t known_stream(std::uint64_t seed, std::uint64_t use, std::size_t table);

/// A rectangle of a table in memory, with its optimizer's state.
class Rectangle {
 public:
  /// Zeros.
  Rectangle(RowRange rows, std::int64_t num_columns, DataType type);

  /// Of a table whose element (row, column) is value row * embedding_dim + column of the stream.
  [[nodiscard]] static Rectangle of_table(const Table& table, std::uint64_t stream, RowRange rows,
                                          std::int64_t column_offset, std::int64_t num_columns);

  [[nodiscard]] OperatorTable in_operator();
  /// `row` from the rectangle's first.
  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const;
  [[nodiscard]] RowRange rows() const { return rows_; }
  [[nodiscard]] std::int64_t num_columns() const { return num_columns_; }
  /// Row by row, of fp32.
  [[nodiscard]] std::span<float> floats() { return floats_; }

 private:
  void set(std::int64_t row, std::int64_t column, float value);

  RowRange rows_;
  std::int64_t num_columns_;
  DataType type_;
  std::vector<float> floats_;
  std::vector<Eigen::half> halves_;
  std::vector<float> state_;
};

/// Rectangles in one operator. Without any it does nothing.
class HeldTables {
 public:
  HeldTables(std::vector<Rectangle> rectangles, const OperatorOptions& options, ThreadPool& pool);
  HeldTables(const HeldTables&) = delete;
  HeldTables& operator=(const HeldTables&) = delete;

  [[nodiscard]] std::int64_t total_columns() const { return total_columns_; }
  [[nodiscard]] std::vector<Rectangle>& rectangles() { return rectangles_; }

  /// samples x total_columns().
  [[nodiscard]] std::vector<float> forward(std::span<const IndexBatch> batches,
                                           std::int64_t samples);
  void backward(std::span<const IndexBatch> batches, std::int64_t samples,
                std::span<const float> gradient);

 private:
  std::vector<Rectangle> rectangles_;
  std::int64_t total_columns_ = 0;
  std::optional<EmbeddingOperator> embedding_;
};

}  // namespace neuroshard
