// Collects measured computation costs of random sets of table pieces into a file that can be
// continued: the pre-training data of the computation cost model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/collect/compute/process_group.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// Every width that cuts of a table of 128 columns can leave: the multiples of 4. The paper's are
/// the powers of two among them, as it only halves; a model that was trained on those alone was up
/// to 29 % too low about the others, whose rows straddle cache lines (docs/results.md).
[[nodiscard]] std::vector<std::int64_t> widths_of_pieces();

/// Which sets of pieces are measured. Sample i depends on the seed and i alone.
struct ComputeSamplingOptions {
  std::string workload;       ///< name, recorded with the data
  std::vector<Table> tables;  ///< the pool; each table occurs at each of `dims` columns
  std::vector<std::int64_t> dims = widths_of_pieces();
  int min_tables = 1;  ///< pieces in a set
  int max_tables = 15;
  std::int64_t memory_bytes = std::int64_t{4} << 30;  ///< a set's weights and state fit into this
  std::int64_t batch_size = 4096;
  Optimizer optimizer = Optimizer::sgd;
  /// Share of the tables that a sample either consists of or does not touch at all, so that there
  /// is test data on combinations of tables that training has never seen; and share of the samples.
  double held_out_share = 0.1;
  std::uint64_t seed = 0;
  int in_flight = 1;  ///< samples that alternate, see measure_sets
  /// Several processes share the sequence: this one measures those samples whose id modulo `size`
  /// is its rank, into a file of its own.
  ProcessGroup group;
};

/// True for the tables that are kept from training, a function of the name alone so that all files
/// of one workload agree.
[[nodiscard]] bool is_held_out(const std::string& table_name, double held_out_share);

/// Set `id` of the seeded sequence, of `options.tables`; pieces that do not fit are drawn again.
/// Throws InputError if hardly any set fits into the memory.
[[nodiscard]] std::vector<Piece> sample_pieces(const ComputeSamplingOptions& options,
                                               std::int64_t id);

struct CollectionProgress {
  std::int64_t done = 0;  ///< samples in the file
  std::int64_t requested = 0;
  double seconds = 0.0;       ///< since this run began measuring
  double seconds_left = 0.0;  ///< estimate
};

/// Sets that are given, not drawn: sample i is set i.
struct GivenPieceSets {
  Json origin = Json::Object{};  ///< how the sets were made, recorded as the file's "sampling"
  std::vector<Table> tables;
  std::vector<std::vector<Piece>> sets;  ///< of `tables`
  std::int64_t batch_size = 4096;
  Optimizer optimizer = Optimizer::sgd;
  std::uint64_t seed = 0;  ///< of the batches
  int in_flight = 1;
};

/// Measures samples 0 .. num_samples - 1 that the file does not have yet and appends each as one
/// line as it is done, so that a run killed at any moment loses at most the samples in flight. A
/// set for which the machine has no memory is recorded as skipped. The backend is made once there
/// is anything to measure, before a new file is begun, so that a lack of memory, for example,
/// leaves no file behind. Returns the number measured by this run.
std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const ComputeBackendFactory& backend,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress);

/// On this machine's CPU.
std::int64_t collect_compute_costs(
    const ComputeSamplingOptions& sampling, const ComputeBenchmarkOptions& benchmark,
    std::int64_t num_samples, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress);

/// The same with all the given sets.
std::int64_t collect_compute_costs(
    const GivenPieceSets& given, const ComputeBackendFactory& backend, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress);

/// On this machine's CPU.
std::int64_t collect_compute_costs(
    const GivenPieceSets& given, const ComputeBenchmarkOptions& benchmark, const std::string& path,
    const std::function<void(const CollectionProgress&)>& on_progress);

}  // namespace neuroshard
