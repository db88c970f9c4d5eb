// The launches of the fused embedding operator.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "neuroshard/collect/compute/cuda/launch_plan.h"
#include "neuroshard/collect/compute/cuda/pooling.h"
#include "neuroshard/collect/compute/cuda/row_updates.h"

namespace neuroshard::cuda {

/// A plan's arrays in device memory.
struct DevicePlan {
  const TableLayout* tables = nullptr;
  const PoolingPlan* pooling = nullptr;
  const KeyPlan* keys = nullptr;
  int num_tables = 0;
};

/// One launch for each kind of tables; one more if bags are cut.
void launch_pooling(const LaunchPlan& plan, const DevicePlan& device, const PoolingBuffers& buffers,
                    cudaStream_t stream);

/// The keys of all lookups in the order of tables and bags.
void launch_keys(const LaunchPlan& plan, const DevicePlan& device, LookupKey* keys,
                 cudaStream_t stream);

/// Bytes of scratch memory that sorting `num_keys` keys takes.
[[nodiscard]] std::size_t sort_scratch_bytes(std::int64_t num_keys, KeyBits bits);

/// Sorts by row, stably: within a row, lookups stay in the order of the batch. Returns which of the
/// two buffers holds the result.
[[nodiscard]] LookupKey* launch_sort(LookupKey* keys, LookupKey* other, std::int64_t num_keys,
                                     KeyBits bits, void* scratch, std::size_t scratch_bytes,
                                     cudaStream_t stream);

/// One level of the reduction; `level` and `next_level` are its plans and the next one's in device
/// memory. The first level reads sorted lookups, the others `partials`.
void launch_reduction(const LaunchPlan& plan, std::size_t level_number, const DevicePlan& device,
                      const ReductionPlan* level, const ReductionPlan* next_level,
                      const ReductionBuffers& lookups, const LevelBuffers& partials,
                      const LevelBuffers& next, const UpdateRule& rule, cudaStream_t stream);

}  // namespace neuroshard::cuda
