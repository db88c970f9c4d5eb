// Measuring the fused operator on GPUs, behind the same interface as on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/table.h"

namespace neuroshard {

struct CudaBackendOptions {
  /// That measure at the same time, whatever other processes do; empty: devices_of_process().
  std::vector<int> devices{};
  std::int64_t arena_bytes = std::int64_t{4} << 30;  ///< on each device, for the tables
  DataType data_type = DataType::fp32;               ///< what the arena is filled with
  /// No other program uses a GPU's multiprocessors, so times scatter by a percent, to both sides.
  /// Six values are the fewest for a 95 % interval of the median, which then reaches from the
  /// smallest to the largest, as with seven and eight. With three more it leaves out the smallest
  /// and the largest.
  RepetitionOptions repetitions = gpu_repetitions();
  /// Read before every pass, in sizes of the second-level cache: caches keep some lines for long.
  int disturbance = 4;
  /// Most rows of a table in memory; lookups of larger tables wrap around them as around the arena.
  std::int64_t most_rows = kMaxEmbeddings;
};

/// Throws MachineError where this executable has no CUDA, or the machine has no driver, too old a
/// driver, or no device; InputError for an id without a device, or for devices of several kinds.
[[nodiscard]] ComputeBackendFactory cuda_backend(const CudaBackendOptions& options);

/// Devices of this process among `listed`, or all of its host's where none is: under mpirun, its
/// share of them, by its number among the host's processes; otherwise all. Throws as cuda_backend,
/// and InputError where one is listed twice or there are fewer devices than processes.
[[nodiscard]] std::vector<int> devices_of_process(const std::vector<int>& listed = {});

}  // namespace neuroshard
