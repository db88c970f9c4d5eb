// The kernels of the fused embedding operator: the mapping of threads to the work of pooling.h and
// row_updates.h, and the sort between them.
#include <cub/device/device_radix_sort.cuh>
#include <vector>

#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/device_group.cuh"
#include "neuroshard/collect/compute/cuda/operator_kernels.h"

namespace neuroshard::cuda {

namespace {

/// What is at work is limited by the registers of a multiprocessor, 65,536: four blocks leave a
/// thread 64. A thread has several vectors of 16 bytes under way; many threads with few vectors
/// keep memory and cache busier than few threads with many, as a thread waits for all of its
/// vectors before it asks for the next (docs/experiments/gpu_operator.md).
constexpr int kBlocksPerMultiprocessor = 4;
/// Of the kernels for tables of any kind, which do little of the work.
constexpr int kBlocksForAnyKind = 2;

/// The tables of a launch and where their blocks begin.
struct LaunchTables {
  int first = 0;
  int count = 0;
  std::int64_t first_block = 0;
};

template <class Plan>
__device__ int table_of_this_block(const Plan* plans, const LaunchTables& tables,
                                   std::int64_t block) {
  return tables.first + table_of_block(plans + tables.first, tables.count, block);
}

template <VectorKind kind>
__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerMultiprocessor)
    pooling_kernel(DevicePlan plan, LaunchTables tables, std::int64_t batch_size,
                   PoolingBuffers buffers) {
  const std::int64_t block = tables.first_block + blockIdx.x;
  const int t = table_of_this_block(plan.pooling, tables, block);
  const PoolingPlan& pooling = plan.pooling[t];
  const int number = static_cast<int>(threadIdx.x) / pooling.lanes;
  if (number >= kThreadsPerBlock / pooling.lanes) return;  // threads that make no whole group
  DeviceGroup group(pooling.lanes);
  pool_task<kind>(group, plan.tables[t], pooling, batch_size, task_of_group(pooling, block, number),
                  buffers);
}

__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksForAnyKind)
    joining_kernel(DevicePlan plan, std::int64_t batch_size, PoolingBuffers buffers) {
  const std::int64_t block = blockIdx.x;
  const int t = table_of_block(plan.pooling, plan.num_tables, block);
  const PoolingPlan& pooling = plan.pooling[t];
  const int number = static_cast<int>(threadIdx.x) / pooling.lanes;
  if (number >= kThreadsPerBlock / pooling.lanes) return;
  DeviceGroup group(pooling.lanes);
  join_task(group, plan.tables[t], pooling, batch_size, task_of_group(pooling, block, number),
            buffers);
}

__global__ void __launch_bounds__(kThreadsPerBlock)
    keys_kernel(DevicePlan plan, KeyBits bits, std::int64_t batch_size, LookupKey* keys) {
  const std::int64_t block = blockIdx.x;
  const int t = table_of_block(plan.keys, plan.num_tables, block);
  write_keys(plan.tables[t], bits, batch_size, block - plan.keys[t].first_block,
             static_cast<int>(threadIdx.x), kThreadsPerBlock, keys);
}

struct NextLevel {
  const LevelBuffers& buffers;
  const ReductionPlan* plans;  ///< null after the last level
  int table;
  __device__ PartialSums operator()() const {
    return plans == nullptr ? PartialSums{} : partial_sums(buffers, plans[table]);
  }
};

__device__ std::int64_t segment_of_thread(const ReductionPlan& reduction, std::int64_t block) {
  return task_of_group(reduction, block, static_cast<int>(threadIdx.x) / reduction.lanes);
}

/// The first level, of sorted lookups.
template <VectorKind kind>
__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksPerMultiprocessor)
    reduction_kernel(DevicePlan plan, LaunchTables tables, const ReductionPlan* level,
                     const ReductionPlan* next_level, ReductionBuffers lookups, LevelBuffers next,
                     UpdateRule rule) {
  const std::int64_t block = tables.first_block + blockIdx.x;
  const int t = table_of_this_block(level, tables, block);
  const ReductionPlan& reduction = level[t];
  const TableLayout& table = plan.tables[t];
  DeviceGroup group(reduction.lanes);
  reduce_task<kind>(group, table, reduction, lookup_items(lookups, table), rule,
                    NextLevel{next, next_level, t}, segment_of_thread(reduction, block));
}

/// The others, of partial sums.
__global__ void __launch_bounds__(kThreadsPerBlock, kBlocksForAnyKind)
    partials_kernel(DevicePlan plan, const ReductionPlan* level, const ReductionPlan* next_level,
                    LevelBuffers partials, LevelBuffers next, UpdateRule rule) {
  const std::int64_t block = blockIdx.x;
  const int t = table_of_block(level, plan.num_tables, block);
  const ReductionPlan& reduction = level[t];
  const TableLayout& table = plan.tables[t];
  DeviceGroup group(reduction.lanes);
  reduce_task_of_any(group, table, reduction, partial_items(partials, table, reduction), rule,
                     NextLevel{next, next_level, t}, segment_of_thread(reduction, block));
}

/// Calls `launch` with the kind of each group of tables that has blocks, their number, and which
/// tables they are.
template <class Plan, class Launch>
void for_each_kind(const LaunchPlan& plan, const std::vector<Plan>& plans, std::int64_t num_blocks,
                   const Launch& launch) {
  for (const KindTables& tables : plan.kinds) {
    const BlockRange blocks = blocks_of_kind(plans, num_blocks, tables);
    if (blocks.count == 0) continue;
    const LaunchTables of_launch{tables.first, tables.count, blocks.first};
    const auto count = static_cast<unsigned>(blocks.count);
    with_kind(tables.kind, [&](auto kind) { launch(kind, count, of_launch); });
  }
}

unsigned grid(std::int64_t blocks) { return static_cast<unsigned>(blocks); }

}  // namespace

void launch_pooling(const LaunchPlan& plan, const DevicePlan& device, const PoolingBuffers& buffers,
                    cudaStream_t stream) {
  for_each_kind(plan, plan.pooling, plan.pooling_blocks,
                [&](auto kind, unsigned blocks, const LaunchTables& tables) {
                  pooling_kernel<kind()><<<blocks, kThreadsPerBlock, 0, stream>>>(
                      device, tables, plan.batch_size, buffers);
                  check(cudaGetLastError(), "pooling");
                });
  if (plan.pooling_partials == 0) return;
  joining_kernel<<<grid(plan.pooling_blocks), kThreadsPerBlock, 0, stream>>>(
      device, plan.batch_size, buffers);
  check(cudaGetLastError(), "pooling");
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
  const ReductionLevel& of_level = plan.levels[level_number];
  if (level_number == 0) {
    for_each_kind(plan, of_level.tables, of_level.num_blocks,
                  [&](auto kind, unsigned blocks, const LaunchTables& tables) {
                    reduction_kernel<kind()><<<blocks, kThreadsPerBlock, 0, stream>>>(
                        device, tables, level, next_level, lookups, next, rule);
                    check(cudaGetLastError(), "reduction");
                  });
    return;
  }
  if (of_level.num_blocks == 0) return;
  partials_kernel<<<grid(of_level.num_blocks), kThreadsPerBlock, 0, stream>>>(
      device, level, next_level, partials, next, rule);
  check(cudaGetLastError(), "reduction");
}

}  // namespace neuroshard::cuda
