// Times the fused embedding operator on a set of table pieces, as one device would run it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/memory_arena.h"
#include "neuroshard/collect/compute/stable_median.h"
#include "neuroshard/core/parallel.h"
#include "neuroshard/core/random.h"
#include "neuroshard/core/table.h"
#include "neuroshard/workload/index_batch.h"

namespace neuroshard {

/// `num_columns` columns of a table; the table's own embedding_dim is not looked at.
struct TablePiece {
  const Table* table = nullptr;
  std::int64_t num_columns = 0;
};

struct ComputeBenchmarkOptions {
  int num_threads = 0;                                  ///< <= 0: one per core
  std::int64_t arena_bytes = std::int64_t{4} << 30;     ///< memory that the tables lie in
  std::int64_t disturb_bytes = std::int64_t{40} << 20;  ///< read between runs; beyond any cache
  DataType data_type = DataType::fp32;                  ///< what the arena is filled with
  RepetitionOptions repetitions;
  /// Reads all over the arena for so long per GiB before the first measurement: newly allocated
  /// memory is slow at first, as a virtual machine's host still gathers it in large pages.
  double settle_seconds_per_gib = 2.0;
};

struct ComputeMeasurement {
  double forward_ms = 0.0;   ///< median
  double backward_ms = 0.0;  ///< median
  int repetitions = 0;
  double interval = 0.0;  ///< relative half-width of the 95 % interval of the median of the sum
};

/// One arena of memory serves all measurements: the values in a table do not change its cost, so
/// pieces lie at random places of the arena and may overlap. A piece larger than the arena wraps
/// around it (row r lies where row r mod m would, m rows fitting into the arena); the arena must be
/// far larger than the caches for that not to show.
class ComputeBenchmark {
 public:
  explicit ComputeBenchmark(const ComputeBenchmarkOptions& options);

  /// Draws one batch from the tables' access distributions and times forward and backward on it,
  /// with the caches disturbed before each. Deterministic in all but the times.
  [[nodiscard]] ComputeMeasurement measure(std::span<const TablePiece> pieces,
                                           std::int64_t batch_size, Optimizer optimizer,
                                           Random& random);

  [[nodiscard]] int num_threads() const { return pool_.num_threads(); }

 private:
  void draw_batches(std::span<const TablePiece> pieces, std::int64_t batch_size, Random& random,
                    std::span<const std::int64_t> arena_rows);
  void disturb_caches();

  void settle_memory();

  ComputeBenchmarkOptions options_;
  ThreadPool pool_;
  HugeBuffer arena_;
  HugeBuffer state_arena_;
  HugeBuffer disturbance_;
  HugeBuffer output_;
  HugeBuffer gradient_;
  std::vector<IndexBatch> batches_;
};

}  // namespace neuroshard
