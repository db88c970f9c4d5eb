// Drawing, filling, reading and waiting.
#include <algorithm>

#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/launch_plan.h"
#include "neuroshard/collect/compute/cuda/measuring_kernels.h"

namespace neuroshard::cuda {

namespace {

constexpr unsigned kGridStrideBlocks = 2048;

__global__ void draw_offsets_kernel(const DrawPlan* plans, std::int64_t batch_size) {
  const DrawPlan& plan = plans[blockIdx.y];
  for (std::int64_t bag = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; bag <= batch_size;
       bag += std::int64_t{gridDim.x} * blockDim.x) {
    plan.offsets[bag] = plan.lengths.offset(bag);
  }
}

__global__ void __launch_bounds__(kThreadsPerBlock)
    draw_indices_kernel(const DrawPlan* plans, int num_tables) {
  const std::int64_t block = blockIdx.x;
  const DrawPlan& plan = plans[table_of_block(plans, num_tables, block)];
  const std::int64_t begin = (block - plan.first_block) * kDrawsPerBlock;
  const std::int64_t end =
      begin + kDrawsPerBlock < plan.num_lookups ? begin + kDrawsPerBlock : plan.num_lookups;
  for (std::int64_t lookup = begin + threadIdx.x; lookup < end; lookup += kThreadsPerBlock) {
    plan.indices[lookup] = draw_lookup(plan, lookup);
  }
}

__global__ void fill_kernel(std::uint64_t* words, std::size_t count, std::uint64_t exponent,
                            std::uint64_t mantissa) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    words[i] = exponent | (mix64(i) & mantissa);
  }
}

__global__ void read_kernel(const uint4* words, std::size_t count, unsigned* sink) {
  unsigned sum = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const uint4 word = words[i];
    sum += word.x ^ word.y ^ word.z ^ word.w;
  }
  if (sum == 0xDEADBEEFU) *sink = sum;  // so that the reads are not left out
}

__global__ void wait_kernel(std::uint64_t nanoseconds) {
  const auto now = [] {
    std::uint64_t time = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  };
  const std::uint64_t start = now();
  while (now() - start < nanoseconds) {
  }
}

}  // namespace

void launch_draw(const DrawPlan* plans, int num_tables, std::int64_t num_blocks,
                 std::int64_t batch_size, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(batch_size / kThreadsPerBlock + 1, kGridStrideBlocks));
  constexpr int kMostRows = 65'535;  // of a grid
  for (int first = 0; first < num_tables; first += kMostRows) {
    const dim3 grid(blocks, static_cast<unsigned>(std::min(num_tables - first, kMostRows)));
    draw_offsets_kernel<<<grid, kThreadsPerBlock, 0, stream>>>(plans + first, batch_size);
    check(cudaGetLastError(), "drawing");
  }
  if (num_blocks == 0) return;
  draw_indices_kernel<<<static_cast<unsigned>(num_blocks), kThreadsPerBlock, 0, stream>>>(
      plans, num_tables);
  check(cudaGetLastError(), "drawing");
}

void launch_fill(void* data, std::size_t bytes, bool as_fp16, cudaStream_t stream) {
  if (bytes < 8) return;
  fill_kernel<<<kGridStrideBlocks, kThreadsPerBlock, 0, stream>>>(
      static_cast<std::uint64_t*>(data), bytes / 8,
      as_fp16 ? 0x3800380038003800ULL : 0x3F0000003F000000ULL,
      as_fp16 ? 0x03FF03FF03FF03FFULL : 0x007FFFFF007FFFFFULL);
  check(cudaGetLastError(), "filling");
}

void launch_read(const void* data, std::size_t bytes, unsigned* sink, cudaStream_t stream) {
  read_kernel<<<kGridStrideBlocks, kThreadsPerBlock, 0, stream>>>(static_cast<const uint4*>(data),
                                                                  bytes / 16, sink);
  check(cudaGetLastError(), "reading");
}

void launch_wait(double milliseconds, cudaStream_t stream) {
  if (milliseconds <= 0.0) return;
  wait_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(milliseconds * 1e6));
  check(cudaGetLastError(), "waiting");
}

}  // namespace neuroshard::cuda
