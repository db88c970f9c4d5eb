// The iterations, timed phase by phase.
#include "neuroshard/evaluate/distributed/plan_iterations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "neuroshard/collect/communication/all_to_all_benchmark.h"
#include "neuroshard/collect/communication/partial_sums.h"
#include "neuroshard/collect/compute/resolved_set.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/pooled_layout.h"
#include "neuroshard/io/input_limit.h"
#include "neuroshard/workload/reuse/access_by_row.h"

namespace neuroshard {

namespace {

/// What is timed apart, in the order in which it is reported.
enum Phase : std::size_t { backward_comm, update, lookup, forward_comm, all_reduce, indices };
constexpr std::size_t kPhases = 6;
using Phases = std::array<double, kPhases>;

/// So small that weights hardly change, however long it runs.
constexpr float kLearningRate = 1e-7F;

/// Share of the table's lookups that the shard's rows have.
double access_share(const Task& task, const Shard& shard) {
  if (shard.has_all_rows()) return 1.0;
  const Table& table = task.tables[shard.table];
  if (!has_row_order(table)) {
    return static_cast<double>(shard.num_rows) / static_cast<double>(table.num_embeddings);
  }
  return AccessByRow(table, task.batch_size).range(shard.row_offset, shard.num_rows).share;
}

/// What the devices have of a batch's indices: a slice its own, all column pieces of a device the
/// same ones. An index takes 8 bytes, the length of a bag 4.
AllToAllBytes index_bytes(const Task& task, const ShardingPlan& plan, int rank) {
  const int world_size = task.topology.world_size;
  // Of each device: table and rows, with their share of the table's lookups.
  std::vector<std::map<std::tuple<int, std::int64_t, std::int64_t>, double>> rows(world_size);
  for (const Shard& shard : plan.shards) {
    const auto [place, is_new] =
        rows[shard.device].try_emplace({shard.table, shard.row_offset, shard.num_rows}, 0.0);
    if (is_new) place->second = access_share(task, shard);
  }
  const auto bytes_to = [&](int device, int from) {
    const std::int64_t samples = local_batch_size(task.batch_size, world_size, from);
    std::int64_t bytes = 0;
    for (const auto& [of, share] : rows[device]) {
      const Table& table = task.tables[std::get<0>(of)];
      bytes += 8 * std::llround(table.pooling_factor * share * static_cast<double>(samples)) +
               4 * table.num_features * samples;
    }
    return bytes;
  };
  AllToAllBytes bytes;
  for (int peer = 0; peer < world_size; ++peer) {
    bytes.sent.push_back(bytes_to(peer, rank));
    bytes.received.push_back(bytes_to(rank, peer));
  }
  return bytes;
}

/// The pieces of a device. Where one is a slice, each with its rows.
PieceSet pieces_of(const Task& task, const ShardingPlan& plan, const std::vector<int>& shards,
                   Random random) {
  PieceSet set{0, task.tables, {}, random, task.batch_size, task.optimizer};
  bool has_slices = false;
  for (const int index : shards) {
    const Shard& shard = plan.shards[index];
    set.pieces.push_back({shard.table, shard.num_columns});
    set.rows.push_back({shard.row_offset, shard.rows_of(task.tables[shard.table])});
    has_slices = has_slices || !shard.has_all_rows();
  }
  if (!has_slices) set.rows.clear();
  return set;
}

/// Replicated tables, for the process's own share of the batch.
class Replicas {
 public:
  Replicas(const Task& task, const ShardingPlan& plan, std::int64_t samples, Random random,
           MeasuringDevice& device) {
    const double bytes_of_rows = all_reduce_bytes(task, plan.replicated_tables);
    // Besides the arena, which has the copies whose rows are looked up; the transport has the
    // third.
    require_memory(3.0 * bytes_of_rows, "replicated_tables",
                   "in each process for gradients, weights and all-reduce of the copies, in fp32");
    const auto elements = static_cast<std::size_t>(bytes_of_rows) / sizeof(float);
    gradient_.assign(elements, 0.0F);
    weights_.assign(elements, 0.0F);
    PieceSet set{0, task.tables, {}, random, samples, task.optimizer};
    for (const int index : plan.replicated_tables) {
      set.pieces.push_back({index, task.tables[index].embedding_dim});
    }
    use_at_any_batch_size(set, task.batch_size, tables_);
    if (samples > 0) set_ = device.prepare(set);
  }

  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(gradient_.size() * sizeof(float));
  }
  /// Gradients of the rows that the process's samples hit. The operator writes to rows what a
  /// gradient in memory would get.
  void make_gradients() {
    if (set_) (void)set_->backward().get();
  }
  /// Every row's, as every row has a gradient; then the gradients are zeros again.
  void apply_gradients(ThreadPool& pool) {
    constexpr std::size_t kBlock = 1 << 14;
    pool.for_each((gradient_.size() + kBlock - 1) / kBlock, [&](std::size_t block, int) {
      const std::size_t end = std::min((block + 1) * kBlock, gradient_.size());
      for (std::size_t i = block * kBlock; i < end; ++i) {
        weights_[i] -= kLearningRate * gradient_[i];
        gradient_[i] = 0.0F;
      }
    });
  }
  void look_up() {
    if (set_) (void)set_->forward().get();
  }

 private:
  std::vector<Table> tables_;
  std::unique_ptr<PreparedSet> set_;
  std::vector<float> gradient_;  ///< of all rows, zeros
  std::vector<float> weights_;   ///< stand for those that `set_` has
};

/// The partial sums that a process receives of its samples, and where they are added up.
class ReceivedSums {
 public:
  ReceivedSums(const Task& task, const ShardingPlan& plan, const PooledLayout& layout, int rank)
      : samples_(local_batch_size(task.batch_size, task.topology.world_size, rank)) {
    if (partial_sum_bytes(task, plan) <= 0.0) return;
    std::int64_t columns = 0;  // of the sums
    for (const std::int64_t sent : layout.columns) {
      received_.emplace_back(static_cast<std::size_t>(samples_ * sent), 0.0F);
    }
    for (const PooledColumns& output : layout.outputs) {
      if (output.sources.size() > 1) columns += output.num_columns;
    }
    sums_of_samples_.assign(static_cast<std::size_t>(samples_ * columns), 0.0F);
    std::int64_t next = 0;
    for (const PooledColumns& output : layout.outputs) {
      if (output.sources.size() < 2) continue;
      PartialSums sums;
      for (const auto& [device, column] : output.sources) {
        sums.parts.push_back({received_[device].data() + column, layout.columns[device]});
      }
      sums.sum = {sums_of_samples_.data() + next, columns};
      sums.num_columns = output.num_columns;
      sums_.push_back(std::move(sums));
      next += output.num_columns;
    }
    sums_ = joined(std::move(sums_));
  }

  void add_up(ThreadPool& pool) { add_partial_sums(sums_, samples_, pool); }

 private:
  std::int64_t samples_;
  std::vector<std::vector<float>> received_;  ///< by device; content as it may be
  std::vector<float> sums_of_samples_;
  std::vector<PartialSums> sums_;
};

/// This process's work in an iteration.
class Device {
 public:
  Device(const Task& task, const ShardingPlan& plan, ComputeBackend& backend, std::uint64_t seed,
         Transport& transport, int num_threads)
      : transport_(transport),
        pool_(num_threads),
        layout_(pooled_layout(task, plan)),
        bytes_(forward_bytes(layout_.columns, task.batch_size, DataType::fp32, transport.rank())),
        index_bytes_(index_bytes(task, plan, transport.rank())),
        received_(task, plan, layout_, transport.rank()) {
    const int rank = transport.rank();
    MeasuringDevice& device = *backend.devices.front();
    device.forget_tables();
    if (!layout_.shards[rank].empty()) {
      set_ = device.prepare(pieces_of(task, plan, layout_.shards[rank],
                                      Random::for_stream(seed, static_cast<std::uint64_t>(rank))));
    }
    if (plan.replicated_tables.empty()) return;
    const auto stream =
        static_cast<std::uint64_t>(task.topology.world_size) + static_cast<std::uint64_t>(rank);
    replicas_.emplace(task, plan, local_batch_size(task.batch_size, task.topology.world_size, rank),
                      Random::for_stream(seed, stream), device);
  }

  Phases iterate() {
    transport_.barrier();
    Phases phases{};
    double before = transport_.now_ms();
    const auto lap = [&](Phase phase) {
      const double now = transport_.now_ms();
      phases[phase] += now - before;
      before = now;
    };
    transport_.exchange(bytes_.received, bytes_.sent);
    lap(backward_comm);
    // Replicas first: they take every device the same time, so that none waits for another in the
    // all-reduce.
    if (replicas_) {
      replicas_->make_gradients();
      lap(update);
      transport_.all_reduce(replicas_->bytes());
      lap(all_reduce);
      replicas_->apply_gradients(pool_);
    }
    if (set_) (void)set_->backward().get();
    lap(update);
    if (replicas_) replicas_->look_up();
    if (set_) (void)set_->forward().get();
    lap(lookup);
    transport_.exchange(bytes_.sent, bytes_.received);
    received_.add_up(pool_);
    lap(forward_comm);
    transport_.barrier();
    before = transport_.now_ms();
    transport_.exchange(index_bytes_.sent, index_bytes_.received);
    lap(indices);
    return phases;
  }

 private:
  Transport& transport_;
  ThreadPool pool_;
  PooledLayout layout_;
  AllToAllBytes bytes_;
  AllToAllBytes index_bytes_;
  ReceivedSums received_;
  std::unique_ptr<PreparedSet> set_;
  std::optional<Replicas> replicas_;
};

/// Of all iterations, in process 0: [phase][device][iteration].
using History = std::array<std::vector<std::vector<double>>, kPhases>;

DeviceIteration summarize(const History& history, std::size_t device, double quantile) {
  const auto of = [&](Phase phase) {
    return estimate_quantile(history[phase][device], quantile).value;
  };
  return {.backward_comm_ms = of(backward_comm),
          .update_ms = of(update),
          .lookup_ms = of(lookup),
          .forward_comm_ms = of(forward_comm),
          .all_reduce_ms = of(all_reduce),
          .indices_ms = of(indices)};
}

}  // namespace

PlanIterations run_plan_iterations(const Task& task, const ShardingPlan& plan,
                                   ComputeBackend& backend, const PlanIterationOptions& options,
                                   Transport& transport,
                                   const std::function<void(int)>& on_iteration) {
  const int world_size = task.topology.world_size;
  const RepetitionOptions& repetitions = options.repetitions;
  require_a_process_for_each_device(task, transport.size());
  Device device(task, plan, backend, options.seed, transport, options.num_threads);
  RepeatedTiming slowest(repetitions);
  History history;
  for (auto& phase : history) phase.resize(transport.rank() == 0 ? world_size : 0);
  for (bool again = true; again;) {
    const double begun = transport.now_ms();
    const Phases own = device.iterate();
    std::vector<double> totals(world_size, 0.0);
    const bool counts = !slowest.warming_up();
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const std::vector<double> values = transport.gather(own[phase]);
      for (std::size_t d = 0; d < values.size(); ++d) {
        if (phase != indices) totals[d] += values[d];
        if (counts) history[phase][d].push_back(values[d]);
      }
    }
    if (transport.rank() == 0) {
      slowest.add(*std::max_element(totals.begin(), totals.end()),
                  (transport.now_ms() - begun) * 1e-3);
      if (on_iteration) on_iteration(static_cast<int>(slowest.values().size()));
      again = !slowest.done();
    }
    again = transport.broadcast(again);
  }
  PlanIterations result;
  if (transport.rank() != 0) return result;
  for (int d = 0; d < world_size; ++d) {
    result.devices.push_back(summarize(history, static_cast<std::size_t>(d), repetitions.quantile));
  }
  result.cost_ms = slowest.estimate().value;
  result.interval = slowest.estimate().interval;
  result.iterations = static_cast<int>(slowest.values().size());
  return result;
}

void require_a_process_for_each_device(const Task& task, int processes) {
  if (processes == task.topology.world_size) return;
  throw CollectiveInputError(
      "mpi", fmt::format("{} processes, one per device of the plan", task.topology.world_size),
      fmt::format("{}", processes));
}

}  // namespace neuroshard
