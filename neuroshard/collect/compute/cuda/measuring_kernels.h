// The launches around what is timed: batches, memory filled with numbers, caches disturbed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "neuroshard/collect/compute/cuda/batch_draw.h"

namespace neuroshard::cuda {

/// Writes the offsets and indices of all tables. `plans` is in device memory; `num_blocks` is where
/// the last table's blocks end.
void launch_draw(const DrawPlan* plans, int num_tables, std::int64_t num_blocks,
                 std::int64_t batch_size, cudaStream_t stream);

/// Fills memory with numbers in [0.5, 1), as fp32 or fp16.
void launch_fill(void* data, std::size_t bytes, bool as_fp16, cudaStream_t stream);

/// Reads all of the memory.
void launch_read(const void* data, std::size_t bytes, unsigned* sink, cudaStream_t stream);

/// Keeps the stream busy for this time.
void launch_wait(double milliseconds, cudaStream_t stream);

}  // namespace neuroshard::cuda
