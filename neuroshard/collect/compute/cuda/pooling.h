// The forward pass: how a group of threads pools its bags.
#pragma once

#include <cstdint>

#include "neuroshard/collect/compute/cuda/launch_plan.h"

namespace neuroshard::cuda {

/// Rows that a group loads from memory at the same time. Bags do not interrupt it: the rows of many
/// short bags are as many independent loads as those of one long bag.
inline constexpr int kPoolingUnroll = 4;
/// Bags whose ends are brought ahead of their use.
inline constexpr int kBagsAhead = 16;
/// Ends of bags that one prefetch brings: caches are filled by 32 bytes.
inline constexpr int kOffsetsPerSector = 4;

/// A place on the path through bags and their lookups in order, on which a step goes either over a
/// lookup or over the end of a bag.
struct PathPoint {
  std::int64_t bag = 0;
  std::int64_t lookup = 0;
};

/// The point after `steps` steps: the bag is the first one whose end comes later.
NEUROSHARD_HOST_DEVICE PathPoint point_on_path(const std::int64_t* offsets, std::int64_t batch_size,
                                               std::int64_t num_lookups, std::int64_t steps) {
  if (steps >= batch_size + num_lookups) return {batch_size, num_lookups};
  // The end of bag b is step offsets[b + 1] + b.
  std::int64_t low = 0;
  std::int64_t high = batch_size;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (offsets[middle + 1] + middle < steps) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {low, steps - low};
}

/// The part that a task pools: the bags that end in [first.bag, last.bag), of the first one only
/// the lookups from first.lookup; and of bag last.bag, which other tasks go on with, those before
/// last.lookup.
struct BagRange {
  PathPoint first;
  PathPoint last;
};

NEUROSHARD_HOST_DEVICE BagRange bags_of_range(const TableLayout& table, const PoolingPlan& plan,
                                              std::int64_t batch_size, std::int64_t range) {
  const std::int64_t begin = range * plan.range_length;
  if (plan.splits_bags) {
    return {point_on_path(table.offsets, batch_size, table.num_lookups, begin),
            point_on_path(table.offsets, batch_size, table.num_lookups, begin + plan.range_length)};
  }
  const std::int64_t end =
      begin + plan.range_length < batch_size ? begin + plan.range_length : batch_size;
  return {{begin, table.offsets[begin]}, {end, table.offsets[end]}};
}

/// The first vector of a tile, and how many it has.
struct TileColumns {
  std::int64_t first_column = 0;
  int num_vectors = 0;
};

NEUROSHARD_HOST_DEVICE TileColumns tile_columns(const TableLayout& table, std::int64_t tile,
                                                int lanes) {
  const std::int64_t first_vector = tile * lanes;
  const std::int64_t left = table.num_vectors() - first_vector;
  return {first_vector * table.vector_elements, static_cast<int>(left < lanes ? left : lanes)};
}

/// output[b * output_stride + c] = sum of the bag's rows, 0 for an empty bag. `task` counts the
/// tiles of the first range, then those of the next.
template <class T, int E, class Group>
NEUROSHARD_GROUP_CODE void pool_bags(Group& group, const TableLayout& table,
                                     const PoolingPlan& plan, std::int64_t batch_size,
                                     std::int64_t task, float* output, std::int64_t output_stride,
                                     float* partials) {
  const std::int64_t range = task / plan.num_tiles;
  const BagRange bags = bags_of_range(table, plan, batch_size, range);
  const TileColumns columns = tile_columns(table, task % plan.num_tiles, plan.lanes);
  group.set_vectors(columns.num_vectors);
  const T* weights = static_cast<const T*>(table.weights) + columns.first_column;
  float* bag_output =
      output + bags.first.bag * output_stride + table.column_start + columns.first_column;
  // Within the range, counts are of 32 bits: registers are what limits the threads at work.
  const std::int64_t* indices = table.indices + bags.first.lookup;
  const std::int64_t* ends = table.offsets + bags.first.bag + 1;
  const auto num_lookups = static_cast<int>(bags.last.lookup - bags.first.lookup);
  const auto num_bags = static_cast<int>(bags.last.bag - bags.first.bag);  // that end here
  const auto num_columns = static_cast<unsigned>(table.num_columns);
  const auto end_of = [&](int bag) {
    return bag < num_bags ? static_cast<int>(ends[bag] - bags.first.lookup) : num_lookups;
  };
  // Where every bag is short, each step needs as many ends of bags as it has rows: they should be
  // in the first-level cache by then.
  const auto prefetch_bag_end = [&](int bag) {
    if (bag < num_bags) group.prefetch(ends + bag);
  };
  std::int64_t rows[kPoolingUnroll];
  NEUROSHARD_UNROLL
  for (int u = 0; u < kPoolingUnroll; ++u) rows[u] = u < num_lookups ? indices[u] : 0;
  NEUROSHARD_UNROLL
  for (int ahead = 0; ahead < kBagsAhead; ahead += kOffsetsPerSector) prefetch_bag_end(ahead);
  typename Group::template Tile<E> sum;
  group.zero(sum);
  int bag = 0;
  int bag_end = end_of(0);
  for (int first = 0; first < num_lookups; first += kPoolingUnroll) {
    typename Group::template Weights<T, E> loaded[kPoolingUnroll];
    NEUROSHARD_UNROLL
    for (int u = 0; u < kPoolingUnroll; ++u) {
      if (first + u < num_lookups) group.load_shared(loaded[u], weights + rows[u] * num_columns);
    }
    NEUROSHARD_UNROLL
    for (int ahead = 0; ahead < kPoolingUnroll; ahead += kOffsetsPerSector) {
      prefetch_bag_end(bag + kBagsAhead + ahead);
    }
    NEUROSHARD_UNROLL
    for (int u = 0; u < kPoolingUnroll; ++u) {  // the next rows' numbers arrive meanwhile
      const int lookup = first + kPoolingUnroll + u;
      rows[u] = lookup < num_lookups ? indices[lookup] : 0;
    }
    NEUROSHARD_UNROLL
    for (int u = 0; u < kPoolingUnroll; ++u) {
      if (first + u < num_lookups) {
        while (first + u >= bag_end) {
          group.store(bag_output, sum);
          group.zero(sum);
          bag_output += output_stride;
          bag_end = end_of(++bag);
        }
        group.add(sum, loaded[u]);
      }
    }
  }
  for (; bag < num_bags; ++bag) {
    group.store(bag_output, sum);
    group.zero(sum);
    bag_output += output_stride;
  }
  if (plan.splits_bags) {
    group.store(partials + plan.first_partial + range * table.num_columns + columns.first_column,
                sum);
  }
}

/// Second stage, after pool_bags of all ranges: where the range of `task` ends a bag that began in
/// an earlier one, adds the earlier ranges' sums in their order.
template <int E, class Group>
NEUROSHARD_GROUP_CODE void join_cut_bag(Group& group, const TableLayout& table,
                                        const PoolingPlan& plan, std::int64_t batch_size,
                                        std::int64_t task, float* output,
                                        std::int64_t output_stride, const float* partials) {
  const std::int64_t range = task / plan.num_tiles;
  const BagRange bags = bags_of_range(table, plan, batch_size, range);
  if (bags.first.bag == bags.last.bag) return;  // ends none
  const std::int64_t bag_start = table.offsets[bags.first.bag];
  if (bags.first.lookup == bag_start) return;  // began it, too
  const TileColumns columns = tile_columns(table, task % plan.num_tiles, plan.lanes);
  group.set_vectors(columns.num_vectors);
  const float* sums = partials + plan.first_partial + columns.first_column;
  typename Group::template Tile<E> sum;
  group.zero(sum);
  std::int64_t from = (bag_start + bags.first.bag) / plan.range_length;
  while (from < range) {
    typename Group::template Tile<E> loaded[kPoolingUnroll];
    NEUROSHARD_UNROLL
    for (int u = 0; u < kPoolingUnroll; ++u) {
      if (from + u < range) group.load(loaded[u], sums + (from + u) * table.num_columns);
    }
    NEUROSHARD_UNROLL
    for (int u = 0; u < kPoolingUnroll; ++u) {
      if (from + u < range) group.add(sum, loaded[u]);
    }
    from += kPoolingUnroll;
  }
  float* bag_output =
      output + bags.first.bag * output_stride + table.column_start + columns.first_column;
  typename Group::template Tile<E> last;
  group.load(last, bag_output);
  group.add(sum, last);
  group.store(bag_output, sum);
}

/// Where the forward pass reads and writes.
struct PoolingBuffers {
  float* output = nullptr;  ///< batch_size rows of `output_stride` floats
  std::int64_t output_stride = 0;
  float* partials = nullptr;  ///< LaunchPlan::pooling_partials floats
};

/// Pools the bags of `task`, if there is one of that number, of a table of this kind.
template <VectorKind kind, class Group>
NEUROSHARD_GROUP_CODE void pool_task(Group& group, const TableLayout& table,
                                     const PoolingPlan& plan, std::int64_t batch_size,
                                     std::int64_t task, const PoolingBuffers& buffers) {
  if (task >= plan.num_ranges * plan.num_tiles) return;
  const auto [output, stride, partials] = buffers;
  if constexpr (kind == VectorKind::fp32) {
    pool_bags<float, 4>(group, table, plan, batch_size, task, output, stride, partials);
  } else if constexpr (kind == VectorKind::fp16) {
    pool_bags<Half, 8>(group, table, plan, batch_size, task, output, stride, partials);
  } else if (table.vector_elements == 4) {
    pool_bags<Half, 4>(group, table, plan, batch_size, task, output, stride, partials);
  } else if (table.data_type == DataType::fp16) {
    pool_bags<Half, 1>(group, table, plan, batch_size, task, output, stride, partials);
  } else {
    pool_bags<float, 1>(group, table, plan, batch_size, task, output, stride, partials);
  }
}

/// The second stage of `task`, after the first of all tasks; of any table, where bags are cut.
template <class Group>
NEUROSHARD_GROUP_CODE void join_task(Group& group, const TableLayout& table,
                                     const PoolingPlan& plan, std::int64_t batch_size,
                                     std::int64_t task, const PoolingBuffers& buffers) {
  if (!plan.splits_bags || task >= plan.num_ranges * plan.num_tiles) return;
  const auto [output, stride, partials] = buffers;
  switch (table.vector_elements) {
    case 8:
      return join_cut_bag<8>(group, table, plan, batch_size, task, output, stride, partials);
    case 4:
      return join_cut_bag<4>(group, table, plan, batch_size, task, output, stride, partials);
    default:
      return join_cut_bag<1>(group, table, plan, batch_size, task, output, stride, partials);
  }
}

}  // namespace neuroshard::cuda
