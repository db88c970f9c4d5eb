// Timing of the fused embedding operator.
#include "neuroshard/collect/compute/compute_benchmark.h"

#include <algorithm>
#include <chrono>

#include "neuroshard/collect/compute/embedding_operator.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kAlignment = 64;
/// Small enough that weights and optimizer state stay what they are however long it runs.
constexpr float kLearningRate = 1e-7F;

template <typename F>
double time_ms(const F& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
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

}  // namespace

ComputeBenchmark::ComputeBenchmark(const ComputeBenchmarkOptions& options)
    : options_(options), pool_(options.num_threads, ThreadPlacement::one_per_core) {
  if (options.arena_bytes < (std::int64_t{1} << 20)) {
    throw InputError("arena", "at least 1 MiB", std::to_string(options.arena_bytes) + " bytes");
  }
  arena_ = HugeBuffer(options.arena_bytes);
  state_arena_ = HugeBuffer(options.arena_bytes / 16);
  disturbance_ = HugeBuffer(options.disturb_bytes);
  fill(arena_, options.data_type == DataType::fp16, pool_);
  fill(state_arena_, false, pool_);
  fill(disturbance_, false, pool_);
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

void ComputeBenchmark::draw_batches(std::span<const TablePiece> pieces, std::int64_t batch_size,
                                    Random& random, std::span<const std::int64_t> arena_rows) {
  batches_.resize(pieces.size());
  const std::uint64_t seed = random();
  pool_.for_each(pieces.size(), [&](std::size_t i, int) {
    Random own = Random::for_stream(seed, i);
    IndexSampler(*pieces[i].table, batch_size).draw(batch_size, own, batches_[i]);
    if (arena_rows[i] < pieces[i].table->num_embeddings) {
      for (std::int64_t& row : batches_[i].indices) row %= arena_rows[i];
    }
  });
}

void ComputeBenchmark::disturb_caches() {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(disturbance_.data());
  pool_.for_each(disturbance_.size() / kBlock, [&](std::size_t block, int) {
    for (std::size_t i = 0; i < kBlock / 8; i += 8) (void)words[block * kBlock / 8 + i];
  });
}

ComputeMeasurement ComputeBenchmark::measure(std::span<const TablePiece> pieces,
                                             std::int64_t batch_size, Optimizer optimizer,
                                             Random& random) {
  std::vector<OperatorTable> tables;
  std::vector<std::int64_t> arena_rows;
  std::int64_t total_columns = 0;
  for (const TablePiece& piece : pieces) {
    const DataType type = piece.table->data_type;
    const std::int64_t row_bytes = piece.num_columns * element_bytes(type);
    const auto fitting = std::min(static_cast<std::int64_t>(arena_.size()) / row_bytes,
                                  static_cast<std::int64_t>(state_arena_.size()) / 4);
    const std::int64_t rows = std::min(piece.table->num_embeddings, fitting);
    if (rows < 1) throw MachineError("arena: expected room for one row of a piece, got less");
    auto* state = reinterpret_cast<float*>(place(state_arena_, rows * 4, random));
    tables.push_back(
        {place(arena_, rows * row_bytes, random), state, rows, piece.num_columns, type});
    arena_rows.push_back(rows);
    total_columns += piece.num_columns;
  }
  draw_batches(pieces, batch_size, random, arena_rows);

  const auto elements = static_cast<std::size_t>(batch_size * total_columns);
  ensure_size(output_, elements * 4, pool_);
  ensure_size(gradient_, elements * 4, pool_);
  EmbeddingOperator embedding(std::move(tables), {optimizer, kLearningRate, 1e-8F}, pool_);

  std::vector<double> forward_ms;
  std::vector<double> backward_ms;
  const auto run = [&] {
    disturb_caches();
    forward_ms.push_back(time_ms([&] {
      embedding.forward(batches_, batch_size, {output_.floats(), elements});
    }));
    disturb_caches();
    backward_ms.push_back(time_ms([&] {
      embedding.backward(batches_, batch_size, {gradient_.floats(), elements});
    }));
    return forward_ms.back() + backward_ms.back();
  };
  const std::vector<double> total = repeat_until_stable(run, options_.repetitions);
  const auto counted = [&](const std::vector<double>& values) {
    return std::span(values).last(total.size());
  };
  return {estimate_median(counted(forward_ms)).median, estimate_median(counted(backward_ms)).median,
          static_cast<int>(total.size()), estimate_median(total).interval};
}

}  // namespace neuroshard
