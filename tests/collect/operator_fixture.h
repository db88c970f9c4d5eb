// Tables, batches and a naive double-precision reference to check fused operators against.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard::testing_operator {

inline Eigen::half to_half(float value) { return Eigen::half(value); }

/// Tables with their own memory, and one batch of lookups for each.
struct Fixture {
  std::vector<std::int64_t> rows, columns;
  std::vector<DataType> types;
  std::vector<std::vector<float>> weights;  ///< as fp32, exactly what the operator's memory holds
  std::vector<std::vector<Eigen::half>> half_weights;
  std::vector<std::vector<float>> states;
  std::vector<IndexBatch> batches;
  std::int64_t batch_size = 0;

  void add_table(std::int64_t num_rows, std::int64_t num_columns, DataType type, Random& random) {
    rows.push_back(num_rows);
    columns.push_back(num_columns);
    types.push_back(type);
    std::vector<float> values(num_rows * num_columns);
    for (float& value : values) {
      value = static_cast<float>(random.uniform(-1.0, 1.0));
      if (type == DataType::fp16) value = static_cast<float>(to_half(value));
    }
    half_weights.emplace_back(values.begin(), values.end());
    weights.push_back(std::move(values));
    states.emplace_back(num_rows);
    for (float& state : states.back()) state = static_cast<float>(random.uniform(0.0, 0.1));
  }

  void add_batch(std::int64_t max_length, Random& random) {
    IndexBatch batch;
    batch.offsets.push_back(0);
    const std::int64_t num_rows = rows[batches.size()];
    for (std::int64_t bag = 0; bag < batch_size; ++bag) {
      const std::int64_t length = random.integer(0, max_length);
      for (std::int64_t i = 0; i < length; ++i) {
        // Half of the lookups hit the first rows, so that rows repeat.
        const bool hot = random.uniform() < 0.5;
        batch.indices.push_back(
            random.integer(0, hot ? std::min<std::int64_t>(num_rows - 1, 2) : num_rows - 1));
      }
      batch.offsets.push_back(static_cast<std::int64_t>(batch.indices.size()));
    }
    batches.push_back(std::move(batch));
  }

  [[nodiscard]] std::vector<OperatorTable> tables() {
    std::vector<OperatorTable> result;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      void* memory = types[t] == DataType::fp32 ? static_cast<void*>(weights[t].data())
                                                : static_cast<void*>(half_weights[t].data());
      result.push_back({memory, states[t].data(), rows[t], columns[t], types[t]});
    }
    return result;
  }

  [[nodiscard]] float weight(std::size_t t, std::int64_t i) const {
    return types[t] == DataType::fp32 ? weights[t][i] : static_cast<float>(half_weights[t][i]);
  }

  [[nodiscard]] std::int64_t total_columns() const {
    std::int64_t total = 0;
    for (const std::int64_t count : columns) total += count;
    return total;
  }
};

inline Fixture random_fixture(Random& random) {
  Fixture fixture;
  fixture.batch_size = random.integer(1, 70);
  const std::int64_t num_tables = random.integer(1, 5);
  for (std::int64_t t = 0; t < num_tables; ++t) {
    // Every width of vectors and every remainder occurs.
    const std::int64_t columns =
        random.uniform() < 0.5 ? random.integer(1, 40) : 4 * random.integer(1, 80);
    fixture.add_table(random.integer(1, 300), columns,
                      random.uniform() < 0.5 ? DataType::fp32 : DataType::fp16, random);
    fixture.add_batch(random.integer(0, 12), random);
  }
  return fixture;
}

inline std::vector<double> reference_forward(const Fixture& fixture) {
  const std::int64_t stride = fixture.total_columns();
  std::vector<double> output(fixture.batch_size * stride, 0.0);
  std::int64_t start = 0;
  for (std::size_t t = 0; t < fixture.rows.size(); ++t) {
    const IndexBatch& batch = fixture.batches[t];
    for (std::int64_t bag = 0; bag < fixture.batch_size; ++bag) {
      for (std::int64_t i = batch.offsets[bag]; i < batch.offsets[bag + 1]; ++i) {
        for (std::int64_t c = 0; c < fixture.columns[t]; ++c) {
          output[bag * stride + start + c] +=
              fixture.weight(t, batch.indices[i] * fixture.columns[t] + c);
        }
      }
    }
    start += fixture.columns[t];
  }
  return output;
}

/// Weights after one exact update, in double precision.
inline std::vector<std::vector<double>> reference_backward(const Fixture& fixture,
                                                           const std::vector<float>& gradient,
                                                           const OperatorOptions& options) {
  const std::int64_t stride = fixture.total_columns();
  std::vector<std::vector<double>> result;
  std::int64_t start = 0;
  for (std::size_t t = 0; t < fixture.rows.size(); ++t) {
    const std::int64_t columns = fixture.columns[t];
    std::map<std::int64_t, std::vector<double>> row_gradients;
    for (std::int64_t bag = 0; bag < fixture.batch_size; ++bag) {
      for (std::int64_t i = fixture.batches[t].offsets[bag];
           i < fixture.batches[t].offsets[bag + 1]; ++i) {
        auto& sum = row_gradients[fixture.batches[t].indices[i]];
        sum.resize(columns);
        for (std::int64_t c = 0; c < columns; ++c) sum[c] += gradient[bag * stride + start + c];
      }
    }
    std::vector<double> weights(fixture.rows[t] * columns);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = fixture.weight(t, i);
    for (const auto& [row, sum] : row_gradients) {
      double rate = options.learning_rate;
      if (options.optimizer == Optimizer::rowwise_adagrad) {
        double squares = 0.0;
        for (const double g : sum) squares += g * g;
        rate /= std::sqrt(fixture.states[t][row] + squares / columns) + options.epsilon;
      }
      for (std::int64_t c = 0; c < columns; ++c) weights[row * columns + c] -= rate * sum[c];
    }
    result.push_back(std::move(weights));
    start += columns;
  }
  return result;
}

inline std::vector<float> random_gradient(const Fixture& fixture, Random& random) {
  std::vector<float> gradient(fixture.batch_size * fixture.total_columns());
  for (float& g : gradient) g = static_cast<float>(random.uniform(-1.0, 1.0));
  return gradient;
}

}  // namespace neuroshard::testing_operator
