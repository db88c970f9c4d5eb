// Memory and order of the operator's launches.
#include "neuroshard/collect/compute/cuda/cuda_operator.h"

#include <vector>

#include "neuroshard/collect/compute/cuda/packing.h"

namespace neuroshard::cuda {

CudaEmbeddingOperator::CudaEmbeddingOperator(std::span<const OperatorTable> tables,
                                             std::span<const DeviceLookups> lookups,
                                             std::int64_t batch_size, OperatorOptions options,
                                             std::int64_t resident_threads,
                                             CudaWorkspace& workspace, const Stream& stream)
    : plan_(plan_launches(tables, lookups, batch_size, resident_threads)),
      rule_{options.optimizer, options.learning_rate, options.epsilon},
      workspace_(workspace),
      stream_(stream) {
  Packing packing;
  const auto pack = [&](const auto& values) { return packing.add(values.data(), values.size()); };
  const std::size_t table_place = pack(plan_.tables);
  const std::size_t pooling_place = pack(plan_.pooling);
  const std::size_t keys_place = pack(plan_.keys);
  std::vector<std::size_t> level_places;
  std::int64_t items = 0;
  std::int64_t values = 0;
  for (std::size_t level = 0; level < plan_.levels.size(); ++level) {
    level_places.push_back(pack(plan_.levels[level].tables));
    first_item_.push_back(items);
    first_value_.push_back(values);
    if (level == 0) continue;  // its items are the keys
    items += plan_.levels[level].num_items;
    values += plan_.levels[level].num_values;
  }
  workspace_.plan.reserve(packing.bytes().size());
  workspace_.pooling_partials.reserve(plan_.pooling_partials * sizeof(float));
  workspace_.keys.reserve(plan_.total_lookups * sizeof(LookupKey));
  workspace_.other_keys.reserve(plan_.total_lookups * sizeof(LookupKey));
  workspace_.sort_scratch.reserve(sort_scratch_bytes(plan_.total_lookups, plan_.key_bits));
  workspace_.partial_keys.reserve(items * sizeof(std::int64_t));
  workspace_.partial_values.reserve(values * sizeof(float));

  const auto* base = workspace_.plan.as<>();
  check(cudaMemcpyAsync(workspace_.plan.as<>(), packing.bytes().data(), packing.bytes().size(),
                        cudaMemcpyHostToDevice, stream_.get()),
        "plan");
  stream_.synchronize();  // before `packing` is gone
  device_plan_ = {reinterpret_cast<const TableLayout*>(base + table_place),
                  reinterpret_cast<const PoolingPlan*>(base + pooling_place),
                  reinterpret_cast<const KeyPlan*>(base + keys_place),
                  static_cast<int>(plan_.tables.size())};
  for (const std::size_t place : level_places) {
    device_levels_.push_back(reinterpret_cast<const ReductionPlan*>(base + place));
  }
}

LevelBuffers CudaEmbeddingOperator::level_buffers(std::size_t level) const {
  return {workspace_.partial_keys.as<std::int64_t>() + first_item_[level],
          workspace_.partial_values.as<float>() + first_value_[level]};
}

void CudaEmbeddingOperator::forward(float* output) {
  launch_pooling(plan_, device_plan_,
                 {output, plan_.total_columns, workspace_.pooling_partials.as<float>()},
                 stream_.get());
}

void CudaEmbeddingOperator::backward(const float* gradient) {
  if (plan_.total_lookups == 0) return;
  auto* keys = workspace_.keys.as<LookupKey>();
  launch_keys(plan_, device_plan_, keys, stream_.get());
  const LookupKey* sorted =
      launch_sort(keys, workspace_.other_keys.as<LookupKey>(), plan_.total_lookups, plan_.key_bits,
                  workspace_.sort_scratch.as<>(), workspace_.sort_scratch.size(), stream_.get());
  const ReductionBuffers lookups{sorted, plan_.key_bits.bag_bits, gradient, plan_.total_columns};
  for (std::size_t level = 0; level < plan_.levels.size(); ++level) {
    const bool last = level + 1 == plan_.levels.size();
    launch_reduction(plan_, level, device_plan_, device_levels_[level],
                     last ? nullptr : device_levels_[level + 1], lookups,
                     level == 0 ? LevelBuffers{} : level_buffers(level),
                     last ? LevelBuffers{} : level_buffers(level + 1), rule_, stream_.get());
  }
}

}  // namespace neuroshard::cuda
