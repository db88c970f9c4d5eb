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
#include "neuroshard/collect/compute/set_sampling.h"
#include "neuroshard/core/piece.h"
#include "neuroshard/core/table.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// Told after every sample, and every few seconds while none is done.
struct CollectionProgress {
  std::int64_t done = 0;  ///< samples in the file
  std::int64_t requested = 0;
  double seconds = 0.0;       ///< since this run began measuring
  double seconds_left = 0.0;  ///< estimate
};

/// A file, and the samples that it should have in the end.
struct ComputeCollection {
  ComputeSamplingOptions sampling;
  std::int64_t num_samples = 0;
  std::string path;
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

/// Measures the samples 0 .. num_samples - 1 that each file does not have yet and appends each as
/// one line as it is done, so that a run killed at any moment loses at most the samples in flight.
/// A set for which the machine has no memory is recorded as skipped. The backend is made once there
/// is anything to measure, before a new file is begun, so that a lack of memory, for example,
/// leaves no file behind. Returns the number measured by this run; throws MachineError if that is
/// none of all samples, for the reason of the last, and leaves no new file of skipped ones.
///
/// The samples of all files alternate, in proportion to what each still lacks, and as many are in
/// flight as the largest `in_flight` of the files says: on a machine whose speed changes for
/// minutes as others use it, every file then sees the same moments.
std::int64_t collect_compute_costs(
    const std::vector<ComputeCollection>& files, const ComputeBackendFactory& backend,
    const std::function<void(const CollectionProgress&)>& on_progress);

/// Of one file.
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
