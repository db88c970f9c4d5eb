// Throughput of the fused embedding operator next to the machine's own random-gather ceiling,
// measured in the same run so that a noisy neighbour slows both.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/collect/compute/cpu/memory_arena.h"
#include "neuroshard/collect/compute/cpu/prefetch.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard {
namespace {

struct Case {
  std::int64_t num_embeddings;
  std::int64_t num_columns;
  std::int64_t pooling_factor;
  std::int64_t batch_size;
};

double seconds_of(const auto& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

IndexBatch uniform_batch(const Case& c, Random& random) {
  IndexBatch batch;
  for (std::int64_t bag = 0; bag <= c.batch_size; ++bag) {
    batch.offsets.push_back(bag * c.pooling_factor);
  }
  for (std::int64_t i = 0; i < c.batch_size * c.pooling_factor; ++i) {
    batch.indices.push_back(static_cast<std::int64_t>(random.below(c.num_embeddings)));
  }
  return batch;
}

/// As many batches as it takes for their rows to exceed any cache many times over (or to hit every
/// row of the table), so that a batch met again finds none of its rows there.
std::vector<std::vector<IndexBatch>> batches_beyond_cache(const Case& c, Random& random) {
  constexpr std::int64_t kFootprintBytes = std::int64_t{512} << 20;
  const std::int64_t line_bytes = std::max<std::int64_t>(c.num_columns * 4, 64);
  const std::int64_t lookups = c.batch_size * c.pooling_factor;
  std::vector<std::vector<IndexBatch>> batches;
  do {
    batches.push_back({uniform_batch(c, random)});
  } while (c.num_embeddings > lookups &&
           static_cast<std::int64_t>(batches.size()) * lookups * line_bytes < kFootprintBytes);
  return batches;
}

double count_distinct(std::vector<std::int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return static_cast<double>(std::unique(rows.begin(), rows.end()) - rows.begin());
}

/// Rows ahead that the ceilings prefetch: none, or as many as keep a core's line buffers full at
/// some width. The best of them counts.
constexpr std::array<std::size_t, 7> kDistances{0, 1, 2, 4, 8, 16, 32};

/// Reads one word of every cache line of the rows, nothing else, with the given number of rows
/// prefetched: what the lookups alone take in this loop.
std::uint64_t gather(const std::byte* rows, std::int64_t row_bytes,
                     std::span<const std::int64_t> indices, std::size_t distance) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (distance > 0 && i + distance < indices.size()) {
      const std::byte* ahead = rows + indices[i + distance] * row_bytes;
      for (std::int64_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(ahead + at);
    }
    const std::byte* row = rows + indices[i] * row_bytes;
    for (std::int64_t at = 0; at < row_bytes; at += 64) {
      sum += *reinterpret_cast<const std::uint64_t*>(row + at);
    }
  }
  return sum;
}

/// Changes one word of every cache line of the rows, and of their optimizer states unless that is
/// null, nothing else: what the updates alone take in this loop. Two threads may meet in a row,
/// which is why the words are atomic; relaxed, they cost no more than others.
void update(std::byte* rows, std::int64_t row_bytes, float* states,
            std::span<const std::int64_t> indices, std::size_t distance) {
  const auto touch = [](void* at) {
    std::atomic_ref<std::uint32_t> word(*static_cast<std::uint32_t*>(at));
    word.store(word.load(std::memory_order_relaxed) ^ 1U, std::memory_order_relaxed);
  };
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (distance > 0 && i + distance < indices.size()) {
      const std::byte* ahead = rows + indices[i + distance] * row_bytes;
      for (std::int64_t at = 0; at < row_bytes; at += 64) prefetch_to_write(ahead + at);
      if (states != nullptr) prefetch_to_write(states + indices[i + distance]);
    }
    std::byte* row = rows + indices[i] * row_bytes;
    for (std::int64_t at = 0; at < row_bytes; at += 64) touch(row + at);
    if (states != nullptr) touch(states + indices[i]);
  }
}

/// Time of run(indices of a block), over all blocks, on all threads.
double seconds_over_blocks(std::span<const std::int64_t> indices, ThreadPool& pool,
                           const auto& run) {
  constexpr std::size_t kBlock = 4096;
  return seconds_of([&] {
    pool.for_each((indices.size() + kBlock - 1) / kBlock, [&](std::size_t block, int) {
      const std::size_t first = block * kBlock;
      run(indices.subspan(first, std::min(kBlock, indices.size() - first)));
    });
  });
}

double gather_seconds(const std::byte* rows, std::int64_t row_bytes,
                      std::span<const std::int64_t> indices, std::size_t distance,
                      ThreadPool& pool) {
  std::atomic<std::uint64_t> sum{0};
  const double seconds =
      seconds_over_blocks(indices, pool, [&](std::span<const std::int64_t> block) {
        sum += gather(rows, row_bytes, block, distance);
      });
  benchmark::DoNotOptimize(sum.load());
  return seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Bytes that rates count: of the gather ceiling and of forward, a row per lookup and nothing else,
/// so that their ratio is that of their times (the operator also writes the pooled output); of
/// backward, a gradient row per lookup, and every distinct row read and written. Backward moves
/// other bytes than a gather: its share is of the loop that updates the same rows.
void run_case(benchmark::State& state, const Case& c, Optimizer optimizer) {
  ThreadPool pool(0, ThreadPlacement::one_per_core);
  Random random(1);
  const std::int64_t row_bytes = c.num_columns * 4;
  HugeBuffer weights(c.num_embeddings * row_bytes);
  HugeBuffer adagrad(c.num_embeddings * 4);
  fill(weights, false, pool);
  fill(adagrad, false, pool);
  const std::vector<std::vector<IndexBatch>> batches = batches_beyond_cache(c, random);
  const double num_distinct = count_distinct(batches[0][0].indices);

  std::vector<float> output(c.batch_size * c.num_columns);
  const std::vector<float> gradient(output.size(), 1e-3F);
  EmbeddingOperator embedding(
      {{weights.data(), adagrad.floats(), c.num_embeddings, c.num_columns, DataType::fp32}},
      {optimizer, 1e-7F, 1e-8F}, pool);
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<std::vector<double>> ceiling(kDistances.size());
  std::vector<std::vector<double>> update_ceiling(kDistances.size());
  float* states = optimizer == Optimizer::rowwise_adagrad ? adagrad.floats() : nullptr;
  std::size_t next = 0;
  const auto next_batch = [&]() -> const std::vector<IndexBatch>& {
    return batches[next++ % batches.size()];
  };
  for (auto _ : state) {
    forward.push_back(seconds_of([&] { embedding.forward(next_batch(), c.batch_size, output); }));
    for (std::size_t k = 0; k < ceiling.size(); ++k) {
      const std::size_t distance = kDistances[k];
      ceiling[k].push_back(
          gather_seconds(weights.data(), row_bytes, next_batch()[0].indices, distance, pool));
      update_ceiling[k].push_back(seconds_over_blocks(
          next_batch()[0].indices, pool, [&](std::span<const std::int64_t> block) {
            update(weights.data(), row_bytes, states, block, distance);
          }));
    }
    backward.push_back(
        seconds_of([&] { embedding.backward(next_batch(), c.batch_size, gradient); }));
    state.SetIterationTime(forward.back() + backward.back());
  }
  double gather_time = 1e9;
  double update_time = 1e9;
  for (const auto& times : ceiling) gather_time = std::min(gather_time, median(times));
  for (const auto& times : update_ceiling) update_time = std::min(update_time, median(times));
  const auto lookups = static_cast<double>(batches[0][0].indices.size());
  const double ceiling_rate = lookups * row_bytes / gather_time;
  const double forward_rate = lookups * row_bytes / median(forward);
  const double backward_rate =
      (lookups * row_bytes + 2 * num_distinct * row_bytes) / median(backward);
  state.counters["ceiling_GB/s"] = ceiling_rate * 1e-9;
  state.counters["forward_GB/s"] = forward_rate * 1e-9;
  state.counters["forward_share"] = forward_rate / ceiling_rate;
  state.counters["backward_GB/s"] = backward_rate * 1e-9;
  state.counters["backward_of_update"] = update_time / median(backward);
  state.counters["lookups/us"] = lookups / (median(forward) + median(backward)) * 1e-6;
}

void register_cases() {
  const auto add = [](const char* where, const Case& c, Optimizer optimizer) {
    const std::string name = std::string("operator/") + where +
                             "/columns:" + std::to_string(c.num_columns) + "/" +
                             std::string(to_string(optimizer));
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](benchmark::State& state) { run_case(state, c, optimizer); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.5);
  };
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    for (const std::int64_t columns : {4, 16, 32, 64, 128}) {
      add("out_of_cache", {(std::int64_t{2} << 30) / (columns * 4), columns, 20, 4096}, optimizer);
    }
    for (const std::int64_t columns : {4, 16, 32, 64, 128}) {
      add("in_cache", {(std::int64_t{256} << 10) / (columns * 4), columns, 20, 4096}, optimizer);
    }
  }
}

[[maybe_unused]] const bool registered = (register_cases(), true);

}  // namespace
}  // namespace neuroshard
