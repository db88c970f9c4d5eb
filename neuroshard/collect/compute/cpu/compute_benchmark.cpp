// Sets placed in the arena, their batches drawn, their passes timed.
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "neuroshard/collect/compute/cpu/embedding_kernels.h"
#include "neuroshard/collect/compute/hardware_info.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/memory_limit.h"
#include "neuroshard/core/units.h"
#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kAlignment = 64;
/// Small enough that weights and optimizer state hardly change, however long it runs.
constexpr float kLearningRate = 1e-7F;

template <typename F>
double time_ms(const F& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// A random aligned place for `bytes` in a buffer that has room for them.
std::byte* random_place(const HugeBuffer& buffer, std::int64_t bytes, Random& random) {
  const auto room = static_cast<std::int64_t>(buffer.size()) - bytes;
  return buffer.data() + random.integer(0, room / kAlignment) * kAlignment;
}

/// What is asked for beyond what a set's outputs need, so that a larger set has room.
constexpr double kSpareShare = 0.25;

/// Gives the buffer this size, or leaves none and returns false if there is no memory for it.
bool try_size(HugeBuffer& buffer, std::size_t bytes, ThreadPool& pool) {
  buffer = HugeBuffer();  // give the old one back first
  try {
    buffer = HugeBuffer(bytes);
  } catch (const OutOfMemory&) {
    return false;
  }
  fill(buffer, false, pool);
  return true;
}

/// Throws OutOfMemory where there is no room; the buffer is as large as before then, as other sets
/// are still in flight. Throws MachineError if that was not to be had any more.
void ensure_size(HugeBuffer& buffer, std::size_t bytes, ThreadPool& pool) {
  if (buffer.size() >= bytes) return;
  const std::size_t before = buffer.size();
  const auto spare = static_cast<std::size_t>(kSpareShare * static_cast<double>(bytes));
  if (try_size(buffer, bytes + spare, pool) || try_size(buffer, bytes, pool)) return;
  const std::string available = format_bytes(static_cast<double>(available_memory_bytes()));
  if (!try_size(buffer, before, pool)) {
    throw MachineError(
        fmt::format("memory: expected {} free for the outputs of the sets in flight, got {}",
                    format_bytes(static_cast<double>(before)), available));
  }
  throw OutOfMemory(fmt::format("memory: expected {} free, got {}",
                                format_bytes(static_cast<double>(bytes)), available));
}

/// By default beyond any cache, but no more than the arena: a small arena stays in the caches or
/// not, whatever else is read.
std::int64_t disturb_bytes(const ComputeBenchmarkOptions& options) {
  if (options.disturb_bytes > 0) return options.disturb_bytes;
  return std::min(CacheDisturbance::beyond_any_cache(),
                  std::max(options.arena_bytes, std::int64_t{1} << 20));
}

/// Bytes that a pass over a piece of `rows` rows reads, about, in whole cache lines.
/// `share`: of a slice, its part of the table's rows.
std::int64_t bytes_of_pass(const Table& table, double share, std::int64_t rows,
                           std::int64_t row_bytes, std::int64_t batch_size) {
  const ReuseStatistics reuse = reuse_statistics(table, batch_size);
  const double distinct = std::min(reuse.distinct_rows * share, static_cast<double>(rows));
  const std::int64_t lines = (row_bytes + kAlignment - 1) / kAlignment;
  // Narrow rows share lines.
  const double row_lines = std::min(distinct * static_cast<double>(lines * kAlignment),
                                    static_cast<double>(rows) * static_cast<double>(row_bytes));
  return static_cast<std::int64_t>(row_lines + reuse.num_indices * share * sizeof(std::int64_t));
}

/// Of a lookup: its index, and the key by which it is sorted, twice.
constexpr double kBytesPerLookup = 3.0 * sizeof(std::int64_t);

/// The operator counts lookups in 32 bits; a batch has about as many as expected.
constexpr double kMostLookups = 4e9;

void require_countable(const PieceSet& set) {
  for (const Piece& piece : set.pieces) {
    const double lookups = static_cast<double>(set.batch_size) * set.table_of(piece).pooling_factor;
    if (lookups > kMostLookups) {
      throw OutOfMemory(
          fmt::format("operator: expected at most {:.0f} lookups of a table in a batch, got {:.0f}",
                      kMostLookups, lookups));
    }
  }
}

/// Asking for the memory that is available takes longer than small batches do.
constexpr double kBytesWorthALook = 0x1p28;

/// Memory that a set's batch takes, about. In doubles: it may be more than 2^63.
double bytes_of_batch(const PieceSet& set) {
  const auto samples = static_cast<double>(set.batch_size);
  double bytes = 0.0;
  for (const Piece& piece : set.pieces) {
    bytes +=
        samples * (kBytesPerLookup * set.table_of(piece).pooling_factor + sizeof(std::int64_t));
  }
  return bytes;
}

/// Memory that its outputs and their gradients take; likewise.
double bytes_of_outputs(const PieceSet& set) {
  double columns = 0.0;
  for (const Piece& piece : set.pieces) columns += static_cast<double>(piece.num_columns);
  return 2.0 * sizeof(float) * static_cast<double>(set.batch_size) * columns;
}

/// Rows of the set's i-th piece.
std::int64_t rows_of(const PieceSet& set, std::size_t i) {
  return set.rows.empty() ? set.table_of(set.pieces[i]).num_embeddings : set.rows[i].count;
}

/// Memory that batches hold.
std::int64_t bytes_of(const std::vector<IndexBatch>& batches) {
  std::size_t elements = 0;
  for (const IndexBatch& batch : batches) {
    elements += batch.indices.capacity() + batch.offsets.capacity();
  }
  return static_cast<std::int64_t>(elements * sizeof(std::int64_t));
}

}  // namespace

class ComputeBenchmark::Prepared final : public PreparedSet {
 public:
  Prepared(ComputeBenchmark& device, Placement placement, std::vector<IndexBatch> batches,
           std::int64_t batch_size, Optimizer optimizer)
      : device_(device),
        batch_size_(batch_size),
        elements_(static_cast<std::size_t>(batch_size * placement.total_columns)),
        bytes_touched_(placement.bytes_touched),
        batches_(std::move(batches)),
        embedding_(std::move(placement.tables), {optimizer, kLearningRate, 1e-8F}, device.pool_,
                   device.workspace_) {
    ensure_size(device.output_, elements_ * 4, device.pool_);
    ensure_size(device.gradient_, elements_ * 4, device.pool_);
    device.ready_bytes_ += bytes_of(batches_);
  }
  ~Prepared() override { device_.take_back(std::move(batches_)); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  std::future<double> forward() override {
    return known_time(time_ms([&] {
      embedding_.forward(batches_, batch_size_, {device_.output_.floats(), elements_});
    }));
  }
  std::future<double> backward() override {
    return known_time(time_ms([&] {
      embedding_.backward(batches_, batch_size_, {device_.gradient_.floats(), elements_});
    }));
  }
  [[nodiscard]] std::int64_t bytes_touched() const override { return bytes_touched_; }

 private:
  ComputeBenchmark& device_;
  std::int64_t batch_size_;
  std::size_t elements_;  ///< of the output
  std::int64_t bytes_touched_;
  std::vector<IndexBatch> batches_;
  EmbeddingOperator embedding_;
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
  if (options_.in_flight_bytes <= 0) options_.in_flight_bytes = available_memory_bytes() / 3;
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

ComputeBenchmark::Placement ComputeBenchmark::place(const PieceSet& set, Random& random) const {
  Placement placement;
  for (std::size_t i = 0; i < set.pieces.size(); ++i) {
    const Piece& piece = set.pieces[i];
    const Table& table = set.table_of(piece);
    const std::int64_t row_bytes = piece.num_columns * element_bytes(table.data_type);
    const auto fitting = std::min(static_cast<std::int64_t>(arena_.size()) / row_bytes,
                                  static_cast<std::int64_t>(state_arena_.size()) / 4);
    const std::int64_t rows = std::min(rows_of(set, i), fitting);
    if (rows < 1) throw OutOfMemory("arena: expected room for one row of a piece, got less");
    auto* state = reinterpret_cast<float*>(random_place(state_arena_, rows * 4, random));
    placement.tables.push_back({random_place(arena_, rows * row_bytes, random), state, rows,
                                piece.num_columns, table.data_type});
    placement.total_columns += piece.num_columns;
    const double share =
        static_cast<double>(rows_of(set, i)) / static_cast<double>(table.num_embeddings);
    placement.bytes_touched += bytes_of_pass(table, share, rows, row_bytes, set.batch_size);
  }
  return placement;
}

std::vector<IndexBatch> ComputeBenchmark::draw_batches(const PieceSet& set,
                                                       std::span<const OperatorTable> tables,
                                                       Random& random) {
  std::vector<IndexBatch> batches;
  if (!spare_batches_.empty()) {
    batches = std::move(spare_batches_.back());
    spare_batches_.pop_back();
    spare_bytes_ -= bytes_of(batches);
  }
  batches.resize(set.pieces.size());
  const std::uint64_t seed = random();
  pool_.for_each(set.pieces.size(), [&](std::size_t i, int) {
    Random own = Random::for_stream(seed, i);
    const Table& table = set.table_of(set.pieces[i]);
    IndexSampler(table, set.batch_size).draw(set.batch_size, own, batches[i]);
    if (!set.rows.empty()) {
      keep_rows(set.rows[i], batches[i]);
      batches[i].indices.shrink_to_fit();  // it may be a small part of the table's
    }
    if (tables[i].num_embeddings < rows_of(set, i)) {
      for (std::int64_t& row : batches[i].indices) row %= tables[i].num_embeddings;
    }
  });
  return batches;
}

void ComputeBenchmark::take_back(std::vector<IndexBatch> batches) noexcept {
  const std::int64_t bytes = bytes_of(batches);
  ready_bytes_ -= bytes;
  if (ready_bytes_ + spare_bytes_ + bytes > options_.in_flight_bytes) return;
  try {
    spare_batches_.push_back(std::move(batches));
    spare_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    return;  // the next set makes batches of its own
  }
}

void ComputeBenchmark::require_memory(const PieceSet& set) const {
  const double kept = static_cast<double>(output_.size()) + static_cast<double>(gradient_.size());
  const double outputs = bytes_of_outputs(set);
  double more = bytes_of_batch(set);  // indices have no place in what is kept for outputs
  if (outputs > kept) more += (1.0 + kSpareShare) * outputs - kept;
  if (more < kBytesWorthALook) return;
  const auto available = static_cast<double>(available_memory_bytes());
  if (available <= 0.0 || more <= available) return;  // 0: not known
  throw OutOfMemory(fmt::format("memory: expected {} free for a batch of {} samples, got {}",
                                format_bytes(more), set.batch_size, format_bytes(available)));
}

std::unique_ptr<PreparedSet> ComputeBenchmark::prepare(const PieceSet& set) {
  require_memory(set);
  require_countable(set);
  Random random = set.random;
  Placement placement = place(set, random);
  std::vector<IndexBatch> batches = draw_batches(set, placement.tables, random);
  return std::make_unique<Prepared>(*this, std::move(placement), std::move(batches), set.batch_size,
                                    set.optimizer);
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
          [options] { return one_device(std::make_unique<ComputeBenchmark>(options)); }};
}

}  // namespace neuroshard
