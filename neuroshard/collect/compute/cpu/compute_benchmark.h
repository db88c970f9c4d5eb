// Times the fused embedding operator on a set of table pieces, as one device would run it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/cpu/cache_disturbance.h"
#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/collect/compute/cpu/memory_arena.h"
#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/parallel.h"
#include "neuroshard/core/random.h"
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
  /// Reads all over the arena for so long per GiB before the first measurement: newly allocated
  /// memory is slow at first, as a virtual machine's host still gathers it in large pages.
  double settle_seconds_per_gib = 2.0;
};

/// One arena of memory serves all measurements: the values in a table do not change its cost, so
/// pieces lie at random places of the arena and may overlap. A piece larger than the arena wraps
/// around it (row r lies where row r mod m would, m rows fitting into the arena); the arena must be
/// far larger than the caches for that not to show.
class ComputeBenchmark final : public ComputeBackend {
 public:
  explicit ComputeBenchmark(const ComputeBenchmarkOptions& options);

  /// `in_flight` sets take turns, each running forward once, then each backward once: a machine
  /// shared with others changes its speed for seconds on end, so repetitions far apart tell more
  /// than as many in a row, and many sets disturb each other's caches at no expense.
  void measure(const std::function<std::optional<PieceSet>()>& next, int in_flight,
               std::int64_t batch_size, Optimizer optimizer,
               const std::function<void(const PieceSetResult&)>& on_done) override;
  [[nodiscard]] std::unique_ptr<PreparedSet> prepare_set(PieceSet set, std::int64_t batch_size,
                                                         Optimizer optimizer) override;

  /// A set with its batch, ready to run.
  struct Run;
  struct DeleteRun {
    void operator()(Run* run) const;
  };
  using RunPointer = std::unique_ptr<Run, DeleteRun>;

  /// For callers that time a set's passes among other things. The benchmark must outlive it.
  [[nodiscard]] RunPointer prepare(PieceSet set, std::int64_t batch_size, Optimizer optimizer);
  void forward(Run& run);
  void backward(Run& run);

  [[nodiscard]] int num_threads() const { return pool_.num_threads(); }

 private:
  void draw_batches(const PieceSet& set, std::int64_t batch_size,
                    std::span<const std::int64_t> arena_rows, std::vector<IndexBatch>& batches);
  /// Runs a pass after the caches have been disturbed; returns its time.
  double timed_pass(Run& run, void (ComputeBenchmark::*pass)(Run&));
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
};

/// The machine that this runs on, as it stands in the header of files measured on its CPU.
[[nodiscard]] Json cpu_hardware_json();

/// What this machine is and what is measured on it; its description names the threads and the
/// number of sets in flight.
[[nodiscard]] ComputeBackendFactory cpu_backend(const ComputeBenchmarkOptions& options,
                                                int in_flight);

}  // namespace neuroshard
