// The kernels of the fused embedding operator: the mapping of threads to the work of pooling.h and
// row_updates.h, and the sort between them.
#include <cub/device/device_radix_sort.cuh>

#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/device_group.cuh"
#include "neuroshard/collect/compute/cuda/operator_kernels.h"

namespace neuroshard::cuda {

namespace {

/// Two blocks to a multiprocessor leave a thread 128 registers, which hold eight vectors under way
/// without spilling; 16 warps with eight vectors of 16 bytes per thread are 64 KiB, twice what the
/// memory of an H200 needs on the way to be busy (4.8 TB/s * 0.8 us / 132 multiprocessors).
constexpr int kBlocksPerMultiprocessor = 2;

__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerMultiprocessor)
    pooling_kernel(DevicePlan plan, std::int64_t batch_size, int stage, PoolingBuffers buffers) {
  const std::int64_t block = blockIdx.x;
  const int t = table_of_block(plan.pooling, plan.num_tables, block);
  const PoolingPlan pooling = plan.pooling[t];
  const int number = static_cast<int>(threadIdx.x) / pooling.lanes;
  if (number >= kThreadsPerBlock / pooling.lanes) return;  // threads that make no whole group
  const TableLayout table = plan.tables[t];
  DeviceGroup group(pooling.lanes);
  pool_task(group, table, pooling, batch_size, task_of_group(pooling, block, number), stage,
            buffers);
}

__global__ void __launch_bounds__(kThreadsPerBlock)
    keys_kernel(DevicePlan plan, KeyBits bits, std::int64_t batch_size, LookupKey* keys) {
  const std::int64_t block = blockIdx.x;
  const int t = table_of_block(plan.keys, plan.num_tables, block);
  write_keys(plan.tables[t], bits, batch_size, block - plan.keys[t].first_block,
             static_cast<int>(threadIdx.x), kThreadsPerBlock, keys);
}

struct LookupLevel {
  ReductionBuffers buffers;
  __device__ LookupItems items(const TableLayout& table, const ReductionPlan&) const {
    return lookup_items(buffers, table);
  }
};

struct PartialLevel {
  LevelBuffers buffers;
  __device__ PartialItems items(const TableLayout& table, const ReductionPlan& plan) const {
    return partial_items(buffers, table, plan);
  }
};

template <class Level>
__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerMultiprocessor)
    reduction_kernel(DevicePlan plan, const ReductionPlan* level, const ReductionPlan* next_level,
                     Level source, LevelBuffers next, UpdateRule rule) {
  const std::int64_t block = blockIdx.x;
  const int t = table_of_block(level, plan.num_tables, block);
  const ReductionPlan reduction = level[t];
  const TableLayout table = plan.tables[t];
  DeviceGroup group(reduction.lanes);
  const PartialSums left =
      next_level == nullptr ? PartialSums{} : partial_sums(next, next_level[t]);
  reduce_task(group, table, reduction, source.items(table, reduction), rule, left,
              task_of_group(reduction, block, static_cast<int>(threadIdx.x) / reduction.lanes));
}

unsigned grid(std::int64_t blocks) { return static_cast<unsigned>(blocks); }

}  // namespace

void launch_pooling(const LaunchPlan& plan, const DevicePlan& device, const PoolingBuffers& buffers,
                    cudaStream_t stream) {
  for (int stage = 1; stage <= (plan.pooling_partials > 0 ? 2 : 1); ++stage) {
    pooling_kernel<<<grid(plan.pooling_blocks), kThreadsPerBlock, 0, stream>>>(
        device, plan.batch_size, stage, buffers);
    check(cudaGetLastError(), "pooling");
  }
}

void launch_keys(const LaunchPlan& plan, const DevicePlan& device, LookupKey* keys,
                 cudaStream_t stream) {
  if (plan.key_blocks == 0) return;
  keys_kernel<<<grid(plan.key_blocks), kThreadsPerBlock, 0, stream>>>(device, plan.key_bits,
                                                                      plan.batch_size, keys);
  check(cudaGetLastError(), "keys");
}

std::size_t sort_scratch_bytes(std::int64_t num_keys, KeyBits bits) {
  std::size_t bytes = 0;
  cub::DoubleBuffer<LookupKey> keys;
  check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, num_keys, bits.bag_bits,
                                       bits.bag_bits + bits.row_bits),
        "sort");
  return bytes;
}

LookupKey* launch_sort(LookupKey* keys, LookupKey* other, std::int64_t num_keys, KeyBits bits,
                       void* scratch, std::size_t scratch_bytes, cudaStream_t stream) {
  cub::DoubleBuffer<LookupKey> both(keys, other);
  check(cub::DeviceRadixSort::SortKeys(scratch, scratch_bytes, both, num_keys, bits.bag_bits,
                                       bits.bag_bits + bits.row_bits, stream),
        "sort");
  return both.Current();
}

void launch_reduction(const LaunchPlan& plan, std::size_t level_number, const DevicePlan& device,
                      const ReductionPlan* level, const ReductionPlan* next_level,
                      const ReductionBuffers& lookups, const LevelBuffers& partials,
                      const LevelBuffers& next, const UpdateRule& rule, cudaStream_t stream) {
  const std::int64_t blocks = plan.levels[level_number].num_blocks;
  if (blocks == 0) return;
  if (level_number == 0) {
    reduction_kernel<<<grid(blocks), kThreadsPerBlock, 0, stream>>>(
        device, level, next_level, LookupLevel{lookups}, next, rule);
  } else {
    reduction_kernel<<<grid(blocks), kThreadsPerBlock, 0, stream>>>(
        device, level, next_level, PartialLevel{partials}, next, rule);
  }
  check(cudaGetLastError(), "reduction");
}

}  // namespace neuroshard::cuda
