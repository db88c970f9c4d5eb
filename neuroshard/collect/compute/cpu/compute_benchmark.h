// The CPU as a measuring device: the fused embedding operator on sets of table pieces.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/cpu/cache_disturbance.h"
#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/collect/compute/cpu/memory_arena.h"
#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/index_batch.h"

namespace neuroshard {

struct ComputeBenchmarkOptions {
  int num_threads = 0;                               ///< <= 0: one per core
  std::int64_t arena_bytes = std::int64_t{4} << 30;  ///< memory that the tables lie in
  std::int64_t disturb_bytes = 0;       ///< touched between a set's passes; <= 0: beyond
                                        ///< any cache, or as much as the arena if that is less
  DataType data_type = DataType::fp32;  ///< what the arena is filled with
  RepetitionOptions repetitions;
  /// Memory for the batches of sets that are ready; <= 0: a third of what is available. A set that
  /// is alone may exceed it.
  std::int64_t in_flight_bytes = 0;
  /// Time per GiB for which the arena is read before the first measurement: newly allocated memory
  /// is slow at first, as a virtual machine's host still gathers it in large pages.
  double settle_seconds_per_gib = 2.0;
};

/// This machine's CPU, measuring. One arena of memory serves all sets: the values in a table do not
/// change its cost, so pieces lie at random places of the arena and may overlap. A piece larger
/// than the arena wraps around it (row r lies where row r mod m would, m rows fitting into the
/// arena); the arena must be far larger than the caches, or the times show it.
class ComputeBenchmark final : public MeasuringDevice {
 public:
  explicit ComputeBenchmark(const ComputeBenchmarkOptions& options);

  [[nodiscard]] std::unique_ptr<PreparedSet> prepare(const PieceSet& set) override;
  [[nodiscard]] bool can_keep_rows() const override { return true; }
  [[nodiscard]] int max_in_flight() const override { return std::numeric_limits<int>::max(); }
  [[nodiscard]] bool has_room() const override { return ready_bytes_ < options_.in_flight_bytes; }
  [[nodiscard]] std::int64_t bytes_between_passes() const override {
    return disturbance_.bytes_between_passes();
  }
  std::int64_t disturb_caches(std::int64_t bytes) override { return disturbance_.read(bytes); }
  [[nodiscard]] RepetitionOptions repetitions() const override { return options_.repetitions; }

 private:
  class Prepared;
  /// Where a set's pieces lie.
  struct Placement {
    std::vector<OperatorTable> tables;
    std::int64_t total_columns = 0;
    std::int64_t bytes_touched = 0;  ///< rows and indices, which each pass touches
  };

  /// Throws OutOfMemory, before any is taken, if the batch would not fit.
  void require_memory(const PieceSet& set) const;
  Placement place(const PieceSet& set, Random& random) const;
  std::vector<IndexBatch> draw_batches(const PieceSet& set, std::span<const OperatorTable> tables,
                                       Random& random);
  /// Of a set that is done.
  void take_back(std::vector<IndexBatch> batches) noexcept;
  void settle_memory();

  ComputeBenchmarkOptions options_;
  ThreadPool pool_;
  HugeBuffer arena_;
  HugeBuffer state_arena_;
  CacheDisturbance disturbance_;
  HugeBuffer output_;
  HugeBuffer gradient_;
  std::shared_ptr<OperatorWorkspace> workspace_ = std::make_shared<OperatorWorkspace>();
  /// Batches of sets that are done, whose memory the next ones take.
  std::vector<std::vector<IndexBatch>> spare_batches_;
  std::int64_t ready_bytes_ = 0;  ///< of the batches of sets that are ready
  std::int64_t spare_bytes_ = 0;
};

/// This machine, as in the header of files measured on its CPU.
[[nodiscard]] Json cpu_hardware_json();

/// A backend of this machine's CPU; its description includes the threads and the number of sets in
/// flight.
[[nodiscard]] ComputeBackendFactory cpu_backend(const ComputeBenchmarkOptions& options,
                                                int in_flight);

}  // namespace neuroshard
