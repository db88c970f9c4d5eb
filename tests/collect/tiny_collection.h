// Collections of computation costs that take milliseconds, for tests.
#pragma once

#include <fmt/format.h>

#include "neuroshard/collect/compute/compute_collector.h"

namespace neuroshard::testing_collection {

inline ComputeSamplingOptions tiny_sampling(int num_tables = 12) {
  ComputeSamplingOptions options;
  options.workload = "tiny";
  for (int t = 0; t < num_tables; ++t) {
    Table table;
    table.name = fmt::format("t{}", t);
    table.num_embeddings = 50 + 100 * t;
    table.embedding_dim = 16;
    table.pooling_factor = 1.5;
    options.tables.push_back(table);
  }
  options.dims = {4, 8};
  options.max_tables = 3;
  options.memory_bytes = 1 << 20;
  options.batch_size = 32;
  options.held_out_share = 0.3;
  options.seed = 5;
  return options;
}

/// One thread, one run each, hardly any memory: the times mean nothing.
inline ComputeBenchmarkOptions tiny_benchmark() {
  ComputeBenchmarkOptions options;
  options.num_threads = 1;
  options.arena_bytes = 1 << 20;
  options.disturb_bytes = 1 << 20;
  options.repetitions = {
      .target_interval = 1.0, .warm_ups = 0, .min_repetitions = 1, .max_repetitions = 1};
  return options;
}

inline std::unique_ptr<ComputeBackend> tiny_backend() {
  return cpu_backend(tiny_benchmark(), 1).make();
}

}  // namespace neuroshard::testing_collection
