// The CUDA operator on the host: every launch, block by block and group by group, from the same
// plans and with the same code as on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/cuda/launch_plan.h"
#include "neuroshard/collect/compute/cuda/lookup_keys.h"
#include "neuroshard/collect/compute/cuda/pooling.h"
#include "neuroshard/collect/compute/cuda/row_updates.h"
#include "neuroshard/workload/reuse/index_batch.h"
#include "tests/cuda/host_group.h"

namespace neuroshard::cuda {

inline std::vector<DeviceLookups> host_lookups(const std::vector<IndexBatch>& batches) {
  std::vector<DeviceLookups> lookups;
  for (const IndexBatch& batch : batches) {
    std::int64_t longest = 0;
    for (std::size_t b = 0; b + 1 < batch.offsets.size(); ++b) {
      longest = std::max(longest, batch.offsets[b + 1] - batch.offsets[b]);
    }
    lookups.push_back(
        {batch.indices.data(), batch.offsets.data(), std::ssize(batch.indices), longest});
  }
  return lookups;
}

class EmulatedOperator {
 public:
  EmulatedOperator(std::span<const OperatorTable> tables, const std::vector<IndexBatch>& batches,
                   std::int64_t batch_size, std::int64_t resident_threads)
      : plan_(plan_launches(tables, host_lookups(batches), batch_size, resident_threads)) {}

  [[nodiscard]] const LaunchPlan& plan() const { return plan_; }

  void forward(std::span<float> output) const {
    std::vector<float> partials(plan_.pooling_partials, NAN);
    const PoolingBuffers buffers{output.data(), plan_.total_columns, partials.data()};
    for_each_group(plan_.pooling, plan_.pooling_blocks, [&](std::size_t t, std::int64_t task) {
      const PoolingPlan& pooling = plan_.pooling[t];
      HostGroup group(pooling.lanes);
      with_kind(plan_.tables[t].kind(), [&](auto kind) {
        pool_task<kind()>(group, plan_.tables[t], pooling, plan_.batch_size, task, buffers);
      });
    });
    if (plan_.pooling_partials == 0) return;
    for_each_group(plan_.pooling, plan_.pooling_blocks, [&](std::size_t t, std::int64_t task) {
      HostGroup group(plan_.pooling[t].lanes);
      join_task(group, plan_.tables[t], plan_.pooling[t], plan_.batch_size, task, buffers);
    });
  }

  void backward(std::span<const float> gradient, const UpdateRule& rule) const {
    std::vector<LookupKey> keys = sorted_keys();
    std::vector<std::vector<std::int64_t>> level_keys;
    std::vector<std::vector<float>> level_values;
    for (const ReductionLevel& level : plan_.levels) {
      level_keys.emplace_back(level.num_items, -7);  // of no row: must be written before it is read
      level_values.emplace_back(level.num_values, NAN);
    }
    const ReductionBuffers buffers{keys.data(), plan_.key_bits.bag_bits, gradient.data(),
                                   plan_.total_columns};
    for (std::size_t l = 0; l < plan_.levels.size(); ++l) {
      const bool last = l + 1 == plan_.levels.size();
      const std::vector<ReductionPlan>& plans = plan_.levels[l].tables;
      for_each_group(plans, plan_.levels[l].num_blocks, [&](std::size_t t, std::int64_t number) {
        HostGroup group(plans[t].lanes);
        const TableLayout& table = plan_.tables[t];
        const auto next = [&] {
          if (last) return PartialSums{};
          return partial_sums({level_keys[l + 1].data(), level_values[l + 1].data()},
                              plan_.levels[l + 1].tables[t]);
        };
        if (l == 0) {
          with_kind(table.kind(), [&](auto kind) {
            reduce_task<kind()>(group, table, plans[t], lookup_items(buffers, table), rule, next,
                                number);
          });
        } else {
          reduce_task_of_any(
              group, table, plans[t],
              partial_items({level_keys[l].data(), level_values[l].data()}, table, plans[t]), rule,
              next, number);
        }
      });
    }
  }

  /// As the kernel writes them, sorted as the radix sort does: by row, stably.
  [[nodiscard]] std::vector<LookupKey> sorted_keys() const {
    std::vector<LookupKey> keys(plan_.total_lookups, ~LookupKey{0});
    for (std::int64_t block = 0; block < plan_.key_blocks; ++block) {
      const int t = table_of_block(plan_.keys.data(), static_cast<int>(plan_.keys.size()), block);
      for (int thread = 0; thread < kThreadsPerBlock; ++thread) {
        write_keys(plan_.tables[t], plan_.key_bits, plan_.batch_size,
                   block - plan_.keys[t].first_block, thread, kThreadsPerBlock, keys.data());
      }
    }
    std::stable_sort(keys.begin(), keys.end(), [&](LookupKey a, LookupKey b) {
      return a >> plan_.key_bits.bag_bits < b >> plan_.key_bits.bag_bits;
    });
    return keys;
  }

 private:
  /// Kind by kind, as the launches are.
  template <class Plan, class Body>
  void for_each_group(const std::vector<Plan>& plans, std::int64_t num_blocks,
                      const Body& body) const {
    for (const KindTables& tables : plan_.kinds) {
      const BlockRange blocks = blocks_of_kind(plans, num_blocks, tables);
      for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
        const int t =
            tables.first + table_of_block(plans.data() + tables.first, tables.count, block);
        for (int group = 0; group < kThreadsPerBlock / plans[t].lanes; ++group) {
          body(static_cast<std::size_t>(t), task_of_group(plans[t], block, group));
        }
      }
    }
  }

  LaunchPlan plan_;
};

}  // namespace neuroshard::cuda
