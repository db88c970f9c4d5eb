// One iteration after another, on the plan's processes and on a device that has everything.
#include "neuroshard/evaluate/distributed/value_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "neuroshard/collect/communication/communication_case.h"
#include "neuroshard/collect/communication/partial_sums.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/pooled_layout.h"
#include "neuroshard/core/units.h"
#include "neuroshard/evaluate/distributed/known_tables.h"
#include "neuroshard/evaluate/distributed/plan_iterations.h"

namespace neuroshard {

namespace {

constexpr float kLearningRate = 0.015625F;  // a power of two, so that products are exact
constexpr float kEpsilon = 1e-8F;
/// Sums of eighths are exact in fp32 up to two million; what is left are roots, quotients and very
/// long sums. Far below what one lookup too many or too few changes.
constexpr double kTolerance = 1e-5;
/// A last place of fp16, in case that a sum is rounded to the other side.
constexpr double kHalfTolerance = 0x1p-10;

/// The second one meets the states and weights that the first has left.
constexpr int kIterations = 2;

/// The bags of samples [first, first + count).
IndexBatch bags_of(const IndexBatch& batch, std::int64_t first, std::int64_t count) {
  IndexBatch result;
  const std::int64_t begin = batch.offsets[first];
  result.indices.assign(batch.indices.begin() + begin,
                        batch.indices.begin() + batch.offsets[first + count]);
  for (std::int64_t bag = first; bag <= first + count; ++bag) {
    result.offsets.push_back(batch.offsets[bag] - begin);
  }
  return result;
}

/// A table's every row once, a bag each.
IndexBatch every_row(std::int64_t rows) {
  IndexBatch batch;
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.indices.push_back(row);
    batch.offsets.push_back(row);
  }
  batch.offsets.push_back(rows);
  return batch;
}

/// The columns of all tables side by side: pooled outputs and their gradients.
struct Columns {
  explicit Columns(const Task& task) {
    for (const Table& table : task.tables) {
      first.push_back(total);
      total += table.embedding_dim;
    }
  }
  std::vector<std::int64_t> first;  ///< of each table
  std::int64_t total = 0;
};

/// Whole tables, for the process's own samples; their gradients are summed over all processes.
class ReplicatedTables {
 public:
  ReplicatedTables(const Task& task, const ShardingPlan& plan, std::uint64_t seed,
                   const OperatorOptions& options, ThreadPool& pool)
      : tables_(plan.replicated_tables), options_(options), pool_(pool) {
    std::vector<Rectangle> rectangles;
    for (const int t : tables_) {
      const Table& table = task.tables[t];
      rectangles.push_back(Rectangle::of_table(table, known_stream(seed, 0, t),
                                               {0, table.num_embeddings}, 0, table.embedding_dim));
    }
    held_.emplace(std::move(rectangles), options, pool);
  }

  [[nodiscard]] HeldTables& held() { return *held_; }
  [[nodiscard]] const std::vector<int>& tables() const { return tables_; }

  void update(std::span<const IndexBatch> batches, std::int64_t samples,
              std::span<const float> gradient) {
    // SGD by -1 on zeros makes the gradient of every row.
    std::vector<Rectangle> zeros;
    for (const Rectangle& rectangle : held_->rectangles()) {
      zeros.emplace_back(rectangle.rows(), rectangle.num_columns(), DataType::fp32);
    }
    HeldTables gradients(std::move(zeros), {Optimizer::sgd, -1.0F, kEpsilon}, pool_);
    gradients.backward(batches, samples, gradient);
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      Rectangle& sums = gradients.rectangles()[i];
      MpiTransport::sum_values(sums.floats());
      const std::int64_t rows = sums.rows().count;
      const IndexBatch all_rows = every_row(rows);
      EmbeddingOperator({held_->rectangles()[i].in_operator()}, options_, pool_)
          .backward({&all_rows, 1}, rows, sums.floats());
    }
  }

 private:
  std::vector<int> tables_;
  OperatorOptions options_;
  ThreadPool& pool_;
  std::optional<HeldTables> held_;
};

/// A process's part of the plan, and next to it everything on one device.
class CheckedProcess {
 public:
  CheckedProcess(const Task& task, const ShardingPlan& plan, std::uint64_t seed,
                 MpiTransport& transport, ThreadPool& pool)
      : task_(task),
        plan_(plan),
        seed_(seed),
        transport_(transport),
        pool_(pool),
        options_{task.optimizer, kLearningRate, kEpsilon},
        layout_(pooled_layout(task, plan)),
        columns_(task),
        rank_(transport.rank()),
        samples_(local_batch_size(task.batch_size, transport.size(), rank_)),
        own_(own_pieces(), options_, pool),
        same_columns_(own_pieces_with_all_rows(), options_, pool),
        whole_(whole_tables(), options_, pool),
        replicas_(task, plan, seed, options_, pool) {
    for (int peer = 0; peer < transport.size(); ++peer) {
      const std::int64_t theirs = local_batch_size(task.batch_size, transport.size(), peer);
      if (peer < rank_) first_sample_ += theirs;
      outputs_to_.push_back(theirs * layout_.columns[rank_]);
      outputs_from_.push_back(samples_ * layout_.columns[peer]);
    }
  }

  void iterate(int iteration) {
    const Batches batches = draw(iteration);
    // With row-wise Adagrad whole tables have other states than pieces of some columns, and after
    // an update other weights.
    if (iteration == 0 || task_.optimizer == Optimizer::sgd) {
      compare_outputs(pooled_outputs(batches), whole_.forward(batches.whole, task_.batch_size));
    }
    update(batches, iteration);
  }

  void compare_weights() {
    for (std::size_t i = 0; i < own_.rectangles().size(); ++i) {
      compare(own_.rectangles()[i], same_columns_.rectangles()[i]);
    }
    for (std::size_t i = 0; i < replicas_.tables().size(); ++i) {
      compare(replicas_.held().rectangles()[i], whole_.rectangles()[replicas_.tables()[i]]);
    }
  }

  [[nodiscard]] const ValueCheck& result() const { return result_; }

 private:
  /// Of one iteration: of all tables whole, and as its pieces and copies have them.
  struct Batches {
    std::vector<IndexBatch> whole;
    std::vector<IndexBatch> of_pieces;
    std::vector<IndexBatch> of_pieces_with_all_rows;
    std::vector<IndexBatch> of_replicas;
  };

  [[nodiscard]] RowRange rows_of(const Shard& shard) const {
    return {shard.row_offset, shard.rows_of(task_.tables[shard.table])};
  }

  template <typename Rows>
  std::vector<Rectangle> pieces(const Rows& rows) const {
    std::vector<Rectangle> result;
    for (const int index : layout_.shards[rank_]) {
      const Shard& shard = plan_.shards[index];
      result.push_back(Rectangle::of_table(task_.tables[shard.table],
                                           known_stream(seed_, 0, shard.table), rows(shard),
                                           shard.column_offset, shard.num_columns));
    }
    return result;
  }
  [[nodiscard]] std::vector<Rectangle> own_pieces() const {
    return pieces([&](const Shard& shard) { return rows_of(shard); });
  }
  [[nodiscard]] std::vector<Rectangle> own_pieces_with_all_rows() const {
    return pieces([&](const Shard& shard) {
      return RowRange{0, task_.tables[shard.table].num_embeddings};
    });
  }
  [[nodiscard]] std::vector<Rectangle> whole_tables() const {
    std::vector<Rectangle> result;
    for (std::size_t t = 0; t < task_.tables.size(); ++t) {
      const Table& table = task_.tables[t];
      result.push_back(Rectangle::of_table(table, known_stream(seed_, 0, t),
                                           {0, table.num_embeddings}, 0, table.embedding_dim));
    }
    return result;
  }

  [[nodiscard]] Batches draw(int iteration) const {
    Batches batches;
    batches.whole.resize(task_.tables.size());
    for (std::size_t t = 0; t < task_.tables.size(); ++t) {
      Random random(known_stream(seed_, 2 * iteration + 1, t));
      IndexSampler(task_.tables[t], task_.batch_size)
          .draw(task_.batch_size, random, batches.whole[t]);
    }
    for (const int index : layout_.shards[rank_]) {
      const Shard& shard = plan_.shards[index];
      batches.of_pieces_with_all_rows.push_back(batches.whole[shard.table]);
      batches.of_pieces.push_back(batches.whole[shard.table]);
      keep_rows(rows_of(shard), batches.of_pieces.back());
    }
    for (const int t : replicas_.tables()) {
      batches.of_replicas.push_back(bags_of(batches.whole[t], first_sample_, samples_));
    }
    return batches;
  }

  /// Of the process's samples: what all processes have looked up for them, partial sums added up.
  std::vector<float> pooled_outputs(const Batches& batches) {
    const std::vector<float> sent = own_.forward(batches.of_pieces, task_.batch_size);
    std::vector<std::vector<float>> blocks = received_blocks(sent);
    std::vector<float> outputs(static_cast<std::size_t>(samples_ * columns_.total), 0.0F);
    std::vector<PartialSums> sums;
    for (const PooledColumns& output : layout_.outputs) {
      PartialSums one;
      for (const auto& [device, column] : output.sources) {
        one.parts.push_back({blocks[device].data() + column, layout_.columns[device]});
      }
      one.sum = {outputs.data() + columns_.first[output.table] + output.column_offset,
                 columns_.total};
      one.num_columns = output.num_columns;
      sums.push_back(std::move(one));
    }
    std::vector<float> copies = replicas_.held().forward(batches.of_replicas, samples_);
    std::int64_t next = 0;
    for (const int t : replicas_.tables()) {
      PartialSums one;
      one.parts.push_back({copies.data() + next, replicas_.held().total_columns()});
      one.sum = {outputs.data() + columns_.first[t], columns_.total};
      one.num_columns = task_.tables[t].embedding_dim;
      next += one.num_columns;
      sums.push_back(std::move(one));
    }
    add_partial_sums(sums, samples_, pool_);
    return outputs;
  }

  /// The columns of each device, for the process's samples.
  std::vector<std::vector<float>> received_blocks(const std::vector<float>& sent) {
    std::int64_t all = 0;
    for (const std::int64_t count : outputs_from_) all += count;
    std::vector<float> received(static_cast<std::size_t>(all));
    transport_.exchange_values(sent, outputs_to_, received, outputs_from_);
    std::vector<std::vector<float>> blocks;
    std::int64_t next = 0;
    for (const std::int64_t count : outputs_from_) {
      blocks.emplace_back(received.begin() + next, received.begin() + next + count);
      next += count;
    }
    const std::int64_t own_first = first_sample_ * layout_.columns[rank_];
    std::copy_n(sent.begin() + own_first, outputs_from_[rank_], blocks[rank_].begin());
    return blocks;
  }

  [[nodiscard]] float gradient(int iteration, std::size_t table, std::int64_t sample,
                               std::int64_t column) const {
    return known_value(known_stream(seed_, 2 * iteration + 2, table),
                       sample * task_.tables[table].embedding_dim + column);
  }

  void update(const Batches& batches, int iteration) {
    // Each process knows the gradients of its samples alone and sends them to all owners.
    std::vector<float> sent;
    for (const std::vector<int>& shards : layout_.shards) {
      const std::vector<float> block = gradients_for(shards, iteration, first_sample_, samples_);
      sent.insert(sent.end(), block.begin(), block.end());
    }
    std::vector<float> received(
        static_cast<std::size_t>(task_.batch_size * layout_.columns[rank_]));
    transport_.exchange_values(sent, outputs_from_, received, outputs_to_);
    std::int64_t own_first = 0;
    for (int peer = 0; peer < rank_; ++peer) own_first += outputs_from_[peer];
    std::copy_n(sent.begin() + own_first, outputs_from_[rank_],
                received.begin() + first_sample_ * layout_.columns[rank_]);
    own_.backward(batches.of_pieces, task_.batch_size, received);

    std::vector<float> of_replicas;
    for (std::int64_t sample = 0; sample < samples_; ++sample) {
      for (const int t : replicas_.tables()) {
        for (std::int64_t c = 0; c < task_.tables[t].embedding_dim; ++c) {
          of_replicas.push_back(gradient(iteration, t, first_sample_ + sample, c));
        }
      }
    }
    replicas_.update(batches.of_replicas, samples_, of_replicas);

    same_columns_.backward(batches.of_pieces_with_all_rows, task_.batch_size,
                           gradients_for(layout_.shards[rank_], iteration, 0, task_.batch_size));
    std::vector<float> all;
    for (std::int64_t sample = 0; sample < task_.batch_size; ++sample) {
      for (std::size_t t = 0; t < task_.tables.size(); ++t) {
        for (std::int64_t c = 0; c < task_.tables[t].embedding_dim; ++c) {
          all.push_back(gradient(iteration, t, sample, c));
        }
      }
    }
    whole_.backward(batches.whole, task_.batch_size, all);
  }

  /// Of the columns of these shards side by side, sample by sample.
  [[nodiscard]] std::vector<float> gradients_for(const std::vector<int>& shards, int iteration,
                                                 std::int64_t first_sample,
                                                 std::int64_t count) const {
    std::vector<float> block;
    for (std::int64_t sample = first_sample; sample < first_sample + count; ++sample) {
      for (const int index : shards) {
        const Shard& shard = plan_.shards[index];
        for (std::int64_t c = 0; c < shard.num_columns; ++c) {
          block.push_back(gradient(iteration, shard.table, sample, shard.column_offset + c));
        }
      }
    }
    return block;
  }

  static double difference(float a, float b) {
    const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
    // A value that is none differs from everything.
    return apart >= 0.0 ? apart / std::max(1.0, std::abs(static_cast<double>(b))) : HUGE_VAL;
  }

  void compare_outputs(const std::vector<float>& outputs, const std::vector<float>& expected) {
    const float* of_own = expected.data() + first_sample_ * columns_.total;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      result_.output_difference =
          std::max(result_.output_difference, difference(outputs[i], of_own[i]));
    }
    result_.outputs += std::ssize(outputs);
  }

  void compare(const Rectangle& own, const Rectangle& expected) {
    const std::int64_t first = own.rows().first - expected.rows().first;
    for (std::int64_t row = 0; row < own.rows().count; ++row) {
      for (std::int64_t c = 0; c < own.num_columns(); ++c) {
        result_.weight_difference = std::max(
            result_.weight_difference, difference(own.at(row, c), expected.at(first + row, c)));
      }
    }
    result_.weights += own.rows().count * own.num_columns();
  }

  const Task& task_;
  const ShardingPlan& plan_;
  std::uint64_t seed_;
  MpiTransport& transport_;
  ThreadPool& pool_;
  OperatorOptions options_;
  PooledLayout layout_;
  Columns columns_;
  int rank_;
  std::int64_t samples_;
  std::int64_t first_sample_ = 0;
  std::vector<std::int64_t> outputs_to_;    ///< values for each process
  std::vector<std::int64_t> outputs_from_;  ///< values from each process
  HeldTables own_;
  HeldTables same_columns_;  ///< the same pieces, with all rows
  HeldTables whole_;
  ReplicatedTables replicas_;
  ValueCheck result_;
};

void require_small_tables(const Task& task, std::int64_t most_bytes) {
  double bytes = 0.0;
  for (const Table& table : task.tables) {
    if (table.num_features > 1) {
      throw CollectiveInputError(fmt::format("table \"{}\"", table.name),
                                 "one feature, as values are compared feature by feature",
                                 fmt::format("{}", table.num_features));
    }
    bytes +=
        4.0 * static_cast<double>(table.num_embeddings) * static_cast<double>(table.embedding_dim);
  }
  if (bytes > static_cast<double>(most_bytes)) {
    throw CollectiveInputError(
        "tables",
        fmt::format("at most {}, as each process has them whole to compare with",
                    format_bytes(static_cast<double>(most_bytes))),
        format_bytes(bytes));
  }
}

}  // namespace

std::optional<ValueCheck> check_values(const Task& task, const ShardingPlan& plan,
                                       std::uint64_t seed, std::int64_t most_bytes,
                                       MpiTransport& transport, ThreadPool& pool) {
  require_a_process_for_each_device(task, transport.size());
  require_small_tables(task, most_bytes);
  CheckedProcess process(task, plan, seed, transport, pool);
  for (int iteration = 0; iteration < kIterations; ++iteration) process.iterate(iteration);
  process.compare_weights();
  const auto over_all = [&](double own) { return transport.gather(own); };
  const ValueCheck& own = process.result();
  const std::vector<double> outputs = over_all(static_cast<double>(own.outputs));
  const std::vector<double> weights = over_all(static_cast<double>(own.weights));
  const std::vector<double> output_differences = over_all(own.output_difference);
  const std::vector<double> weight_differences = over_all(own.weight_difference);
  if (transport.rank() != 0) return std::nullopt;
  ValueCheck all;
  all.iterations = kIterations;
  const bool has_halves =
      std::any_of(task.tables.begin(), task.tables.end(),
                  [](const Table& table) { return table.data_type == DataType::fp16; });
  all.tolerance = has_halves ? kHalfTolerance : kTolerance;
  for (std::size_t d = 0; d < outputs.size(); ++d) {
    all.outputs += std::llround(outputs[d]);
    all.weights += std::llround(weights[d]);
    all.output_difference = std::max(all.output_difference, output_differences[d]);
    all.weight_difference = std::max(all.weight_difference, weight_differences[d]);
  }
  return all;
}

}  // namespace neuroshard
