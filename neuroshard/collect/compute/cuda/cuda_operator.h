// The fused embedding operator on a GPU: many table pieces of any widths and data types, a launch
// for each kind of rows, sum pooling; backward exact, fused with the optimizer.
//
// Forward: every group of threads pools the bags of one range, with four rows on their way at
// once. Backward: the lookups of all tables are sorted by row (radix sort, stably); groups sum the
// gradients of segments of equal length, update the rows that lie within theirs, and leave the
// others' sums to a next, far smaller level. So a hot row is the work of many groups, and every sum
// has one order, which depends on the device's size alone. That results repeat bit for bit was seen
// of one large batch, run twice (tests/cuda/device_operator_test.cpp).
#pragma once

#include <span>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_operator.h"
#include "neuroshard/collect/compute/cuda/device.h"
#include "neuroshard/collect/compute/cuda/launch_plan.h"
#include "neuroshard/collect/compute/cuda/operator_kernels.h"

namespace neuroshard::cuda {

inline constexpr const char* kCudaOperatorName = "neuroshard-cuda";
/// Rises with each change of the operator's times: costs of two versions are those of two
/// operators.
inline constexpr int kCudaOperatorVersion = 1;

/// Memory that calls work in, kept between batches so that none of them allocates. Operators that
/// are not called at the same time may share one.
struct CudaWorkspace {
  DeviceBuffer plan;
  DeviceBuffer pooling_partials;
  DeviceBuffer keys, other_keys;
  DeviceBuffer sort_scratch;
  DeviceBuffer partial_keys, partial_values;
};

class CudaEmbeddingOperator {
 public:
  /// The tables' memory is the device's. Plans the launches of this batch, uploads the plan and
  /// takes the memory; the workspace serves one operator at a time, the latest.
  /// Throws OutOfDeviceMemory, and InputError as plan_launches.
  CudaEmbeddingOperator(std::span<const OperatorTable> tables,
                        std::span<const DeviceLookups> lookups, std::int64_t batch_size,
                        OperatorOptions options, std::int64_t resident_threads,
                        CudaWorkspace& workspace, const Stream& stream);

  /// output[b * total_columns + c]: the pooled rows of all pieces side by side, fp32.
  void forward(float* output);
  /// Each distinct row's gradient is summed over the batch and applied once. `gradient` is laid out
  /// like forward's output. Both return before the device is done.
  void backward(const float* gradient);

  [[nodiscard]] const LaunchPlan& plan() const { return plan_; }

 private:
  [[nodiscard]] LevelBuffers level_buffers(std::size_t level) const;

  LaunchPlan plan_;
  UpdateRule rule_;
  CudaWorkspace& workspace_;
  const Stream& stream_;
  DevicePlan device_plan_;
  std::vector<const ReductionPlan*> device_levels_;
  std::vector<std::int64_t> first_item_;   ///< of each level, in the workspace
  std::vector<std::int64_t> first_value_;  ///< likewise
};

}  // namespace neuroshard::cuda
