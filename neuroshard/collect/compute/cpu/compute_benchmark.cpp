// Timing of the fused embedding operator.
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "neuroshard/collect/compute/cpu/embedding_kernels.h"
#include "neuroshard/collect/compute/hardware_info.h"
#include "neuroshard/core/error.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kAlignment = 64;
/// Small enough that weights and optimizer state stay what they are however long it runs.
constexpr float kLearningRate = 1e-7F;

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

template <typename F>
double time_ms(const F& run) {
  const Clock::time_point start = Clock::now();
  run();
  return milliseconds_since(start);
}

/// A random aligned place for `bytes` in a buffer that has room for them.
std::byte* place(const HugeBuffer& buffer, std::int64_t bytes, Random& random) {
  const auto room = static_cast<std::int64_t>(buffer.size()) - bytes;
  return buffer.data() + random.integer(0, room / kAlignment) * kAlignment;
}

void ensure_size(HugeBuffer& buffer, std::size_t bytes, ThreadPool& pool) {
  if (buffer.size() >= bytes) return;
  buffer = HugeBuffer();  // give the old one back first
  buffer = HugeBuffer(bytes + bytes / 4);
  fill(buffer, false, pool);
}

/// What is no larger than the arena is in the caches or is not, whatever is read between.
std::int64_t disturb_bytes(const ComputeBenchmarkOptions& options) {
  if (options.disturb_bytes > 0) return options.disturb_bytes;
  return std::min(CacheDisturbance::beyond_any_cache(),
                  std::max(options.arena_bytes, std::int64_t{1} << 20));
}

/// About what a pass over a piece of `rows` rows reads, in whole cache lines.
std::int64_t bytes_touched(const Table& table, std::int64_t rows, std::int64_t row_bytes,
                           std::int64_t batch_size) {
  const ReuseStatistics reuse = reuse_statistics(table, batch_size);
  const double distinct = std::min(reuse.distinct_rows, static_cast<double>(rows));
  const std::int64_t lines = (row_bytes + kAlignment - 1) / kAlignment;
  // Narrow rows share lines.
  const double row_lines = std::min(distinct * static_cast<double>(lines * kAlignment),
                                    static_cast<double>(rows) * static_cast<double>(row_bytes));
  return static_cast<std::int64_t>(row_lines + reuse.num_indices * sizeof(std::int64_t));
}

}  // namespace

struct ComputeBenchmark::Run {
  std::int64_t id;
  std::int64_t batch_size;
  std::vector<IndexBatch> batches;
  std::size_t elements;  ///< of the output
  EmbeddingOperator embedding;
  RepeatedTiming total;
  std::int64_t footprint_bytes;  ///< rows and indices, which each pass touches
  std::int64_t last_pass;        ///< when it ended, in CacheDisturbance's bytes
  double round_forward_ms = 0.0;
  double round_seconds = 0.0;  ///< of the round's forward pass, with what came before it
  std::vector<double> forward_ms{};
  std::vector<double> backward_ms{};
};

ComputeBenchmark::ComputeBenchmark(const ComputeBenchmarkOptions& options)
    : options_(options),
      pool_(options.num_threads, ThreadPlacement::one_per_core),
      disturbance_(disturb_bytes(options), pool_) {
  if (options.arena_bytes < (std::int64_t{1} << 20)) {
    throw InputError("arena", "at least 1 MiB", std::to_string(options.arena_bytes) + " bytes");
  }
  arena_ = HugeBuffer(options.arena_bytes);
  state_arena_ = HugeBuffer(options.arena_bytes / 16);
  fill(arena_, options.data_type == DataType::fp16, pool_);
  fill(state_arena_, false, pool_);
  // Large enough for nearly every sample, so that memory seldom has to settle again.
  const auto activations = static_cast<std::size_t>(options.arena_bytes) / 32;
  ensure_size(output_, activations, pool_);
  ensure_size(gradient_, activations, pool_);
  settle_memory();
}

void ComputeBenchmark::settle_memory() {
  constexpr int kReads = 100'000;
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(arena_.data());
  const double seconds =
      options_.settle_seconds_per_gib * static_cast<double>(arena_.size()) * 0x1p-30;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t round = 0;; ++round) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed.count() >= seconds) return;
    pool_.for_each(static_cast<std::size_t>(pool_.num_threads()), [&](std::size_t part, int) {
      Random random = Random::for_stream(round, part);
      for (int i = 0; i < kReads; ++i) (void)words[random.below(arena_.size() / 8)];
    });
  }
}

void ComputeBenchmark::draw_batches(const PieceSet& set, std::int64_t batch_size,
                                    std::span<const std::int64_t> arena_rows,
                                    std::vector<IndexBatch>& batches) {
  batches.resize(set.pieces.size());
  Random random = set.random;
  const std::uint64_t seed = random();
  pool_.for_each(set.pieces.size(), [&](std::size_t i, int) {
    Random own = Random::for_stream(seed, i);
    const Table& table = *set.pieces[i].table;
    IndexSampler(table, batch_size).draw(batch_size, own, batches[i]);
    if (arena_rows[i] < table.num_embeddings) {
      for (std::int64_t& row : batches[i].indices) row %= arena_rows[i];
    }
  });
}

void ComputeBenchmark::DeleteRun::operator()(Run* run) const { delete run; }

ComputeBenchmark::RunPointer ComputeBenchmark::prepare(PieceSet set, std::int64_t batch_size,
                                                       Optimizer optimizer) {
  std::vector<OperatorTable> tables;
  std::vector<std::int64_t> arena_rows;
  std::int64_t total_columns = 0;
  std::int64_t footprint = 0;
  for (const TablePiece& piece : set.pieces) {
    const DataType type = piece.table->data_type;
    const std::int64_t row_bytes = piece.num_columns * element_bytes(type);
    const auto fitting = std::min(static_cast<std::int64_t>(arena_.size()) / row_bytes,
                                  static_cast<std::int64_t>(state_arena_.size()) / 4);
    const std::int64_t rows = std::min(piece.table->num_embeddings, fitting);
    if (rows < 1) throw MachineError("arena: expected room for one row of a piece, got less");
    auto* state = reinterpret_cast<float*>(place(state_arena_, rows * 4, set.random));
    tables.push_back(
        {place(arena_, rows * row_bytes, set.random), state, rows, piece.num_columns, type});
    arena_rows.push_back(rows);
    total_columns += piece.num_columns;
    footprint += bytes_touched(*piece.table, rows, row_bytes, batch_size);
  }
  std::vector<IndexBatch> batches;
  if (!spare_batches_.empty()) {
    batches = std::move(spare_batches_.back());
    spare_batches_.pop_back();
  }
  draw_batches(set, batch_size, arena_rows, batches);
  const auto elements = static_cast<std::size_t>(batch_size * total_columns);
  ensure_size(output_, elements * 4, pool_);
  ensure_size(gradient_, elements * 4, pool_);
  return RunPointer(
      new Run{set.id,
              batch_size,
              std::move(batches),
              elements,
              {std::move(tables), {optimizer, kLearningRate, 1e-8F}, pool_, workspace_},
              RepeatedTiming(options_.repetitions),
              footprint,
              disturbance_.bytes_touched()});
}

void ComputeBenchmark::forward(Run& run) {
  run.embedding.forward(run.batches, run.batch_size, {output_.floats(), run.elements});
}

void ComputeBenchmark::backward(Run& run) {
  run.embedding.backward(run.batches, run.batch_size, {gradient_.floats(), run.elements});
}

double ComputeBenchmark::timed_pass(Run& run, void (ComputeBenchmark::*pass)(Run&)) {
  disturbance_.displace_since(run.last_pass);
  const double ms = time_ms([&] { (this->*pass)(run); });
  disturbance_.touched(run.footprint_bytes);
  run.last_pass = disturbance_.bytes_touched();
  return ms;
}

void ComputeBenchmark::measure(const std::function<std::optional<PieceSet>()>& next, int in_flight,
                               std::int64_t batch_size, Optimizer optimizer,
                               const std::function<void(const PieceSetResult&)>& on_done) {
  std::vector<RunPointer> runs;
  bool more = true;
  const auto begin_next = [&] {
    std::optional<PieceSet> set = next();
    if (!set) {
      more = false;
      return;
    }
    const std::int64_t id = set->id;
    try {
      runs.push_back(prepare(std::move(*set), batch_size, optimizer));
    } catch (const std::bad_alloc&) {
      on_done({id, std::nullopt, "out of memory"});
    } catch (const MachineError& error) {
      on_done({id, std::nullopt, error.what()});
    }
  };
  const auto finish = [&](Run& run) {
    const double quantile = options_.repetitions.quantile;
    on_done(
        {run.id,
         ComputeMeasurement{estimate_quantile(run.forward_ms, quantile).value,
                            estimate_quantile(run.backward_ms, quantile).value,
                            static_cast<int>(run.forward_ms.size()), run.total.estimate().interval},
         ""});
    spare_batches_.push_back(std::move(run.batches));
  };
  Random order(0);
  while (true) {
    while (more && static_cast<int>(runs.size()) < std::max(in_flight, 1)) begin_next();
    if (runs.empty()) return;
    // Nobody is always behind the same one, or first behind the passes of the other kind, whose
    // lines are still on their way out of the caches.
    order.shuffle(runs);
    for (const RunPointer& run : runs) {
      const Clock::time_point start = Clock::now();
      run->round_forward_ms = timed_pass(*run, &ComputeBenchmark::forward);
      run->round_seconds = milliseconds_since(start) * 1e-3;
    }
    for (const RunPointer& run : runs) {
      const Clock::time_point start = Clock::now();
      const double backward_ms = timed_pass(*run, &ComputeBenchmark::backward);
      if (!run->total.warming_up()) {
        run->forward_ms.push_back(run->round_forward_ms);
        run->backward_ms.push_back(backward_ms);
      }
      run->total.add(run->round_forward_ms + backward_ms,
                     run->round_seconds + milliseconds_since(start) * 1e-3);
    }
    std::erase_if(runs, [&](const RunPointer& run) {
      if (!run->total.done()) return false;
      finish(*run);
      return true;
    });
  }
}

namespace {

class CpuPreparedSet final : public PreparedSet {
 public:
  CpuPreparedSet(ComputeBenchmark& benchmark, ComputeBenchmark::RunPointer run)
      : benchmark_(benchmark), run_(std::move(run)) {}
  void forward() override { benchmark_.forward(*run_); }
  void backward() override { benchmark_.backward(*run_); }

 private:
  ComputeBenchmark& benchmark_;
  ComputeBenchmark::RunPointer run_;
};

}  // namespace

std::unique_ptr<PreparedSet> ComputeBenchmark::prepare_set(PieceSet set, std::int64_t batch_size,
                                                           Optimizer optimizer) {
  return std::make_unique<CpuPreparedSet>(*this, prepare(std::move(set), batch_size, optimizer));
}

Json cpu_hardware_json() {
  const HardwareInfo info = cpu_info();
  return Json::Object{{"kind", "cpu"},
                      {"name", info.name},
                      {"num_cores", info.num_cores},
                      {"l2_bytes", info.l2_bytes},
                      {"l3_bytes", info.l3_bytes},
                      {"memory_bytes", info.memory_bytes}};
}

ComputeBackendFactory cpu_backend(const ComputeBenchmarkOptions& options, int in_flight) {
  const HardwareInfo info = cpu_info();
  BackendDescription description;
  description.hardware = cpu_hardware_json();
  description.operator_info =
      Json::Object{{"name", kOperatorName},
                   {"version", kOperatorVersion},
                   {"instruction_set", kernels::instruction_set()},
                   {"num_threads", options.num_threads > 0 ? options.num_threads : info.num_cores},
                   {"quantile", options.repetitions.quantile},
                   {"in_flight", in_flight},
                   {"arena_bytes", options.arena_bytes}};
  return {std::move(description),
          [options] { return std::make_unique<ComputeBenchmark>(options); }};
}

}  // namespace neuroshard
