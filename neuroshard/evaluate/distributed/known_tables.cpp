// Rectangles filled with known values.
#include "neuroshard/evaluate/distributed/known_tables.h"

#include <utility>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {

float known_value(std::uint64_t stream, std::int64_t number) {
  const std::uint64_t bits = mix64(stream + static_cast<std::uint64_t>(number)) >> 60;
  return static_cast<float>(static_cast<int>(bits) - 8) * 0.125F;
}

std::uint64_t known_stream(std::uint64_t seed, std::uint64_t use, std::size_t table) {
  return mix64(mix64(mix64(seed) + use) + table);
}

Rectangle::Rectangle(RowRange rows, std::int64_t num_columns, DataType type)
    : rows_(rows), num_columns_(num_columns), type_(type) {
  const auto elements = static_cast<std::size_t>(rows.count * num_columns);
  if (type == DataType::fp32) {
    floats_.assign(elements, 0.0F);
  } else {
    halves_.assign(elements, Eigen::half(0.0F));
  }
  state_.assign(static_cast<std::size_t>(rows.count), 0.0F);
}

Rectangle Rectangle::of_table(const Table& table, std::uint64_t stream, RowRange rows,
                              std::int64_t column_offset, std::int64_t num_columns) {
  Rectangle result(rows, num_columns, table.data_type);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t c = 0; c < num_columns; ++c) {
      const std::int64_t number = (rows.first + row) * table.embedding_dim + column_offset + c;
      result.set(row, c, known_value(stream, number));
    }
  }
  return result;
}

OperatorTable Rectangle::in_operator() {
  void* weights = type_ == DataType::fp32 ? static_cast<void*>(floats_.data())
                                          : static_cast<void*>(halves_.data());
  return {weights, state_.data(), rows_.count, num_columns_, type_};
}

float Rectangle::at(std::int64_t row, std::int64_t column) const {
  const auto i = static_cast<std::size_t>(row * num_columns_ + column);
  return type_ == DataType::fp32 ? floats_[i] : static_cast<float>(halves_[i]);
}

void Rectangle::set(std::int64_t row, std::int64_t column, float value) {
  const auto i = static_cast<std::size_t>(row * num_columns_ + column);
  if (type_ == DataType::fp32) {
    floats_[i] = value;
  } else {
    halves_[i] = Eigen::half(value);
  }
}

HeldTables::HeldTables(std::vector<Rectangle> rectangles, const OperatorOptions& options,
                       ThreadPool& pool)
    : rectangles_(std::move(rectangles)) {
  std::vector<OperatorTable> tables;
  for (Rectangle& rectangle : rectangles_) {
    tables.push_back(rectangle.in_operator());
    total_columns_ += rectangle.num_columns();
  }
  if (!tables.empty()) embedding_.emplace(std::move(tables), options, pool);
}

std::vector<float> HeldTables::forward(std::span<const IndexBatch> batches, std::int64_t samples) {
  std::vector<float> output(static_cast<std::size_t>(samples * total_columns_), 0.0F);
  if (!output.empty()) embedding_->forward(batches, samples, output);
  return output;
}

void HeldTables::backward(std::span<const IndexBatch> batches, std::int64_t samples,
                          std::span<const float> gradient) {
  if (!gradient.empty()) embedding_->backward(batches, samples, gradient);
}

}  // namespace neuroshard
