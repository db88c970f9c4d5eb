// The backward pass: how a group of threads reduces its segment of the sorted lookups, or of the
// partial sums that segments have left (ReductionPlan).
#pragma once

#include <cmath>
#include <cstdint>

#include "neuroshard/collect/compute/cuda/launch_plan.h"
#include "neuroshard/collect/compute/cuda/lookup_keys.h"

namespace neuroshard::cuda {

inline constexpr std::int64_t kNoRow = -1;
/// Items whose gradients, and rows, a group loads from memory at the same time.
inline constexpr int kReductionUnroll = 2;

/// The update of one row from its gradient g, the sum over the batch:
///   SGD:              w -= learning_rate * g
///   row-wise Adagrad: s += mean(g^2);  w -= learning_rate / (sqrt(s) + epsilon) * g
struct UpdateRule {
  Optimizer optimizer = Optimizer::sgd;
  float learning_rate = 0.0F;
  float epsilon = 0.0F;
};

/// Partial sums that segments leave: items of the next level, two per segment: that of the row that
/// comes in, and that of the row that goes on. The keys are 2 * row, plus 1 for an item without a
/// value (it keeps a row's items together where the row comes in and goes on), or kNoRow.
struct PartialSums {
  std::int64_t* keys = nullptr;  ///< of the table
  float* values = nullptr;       ///< of the table: one row of num_columns floats per item
};

/// Items of the first level: sorted lookups, whose vectors are the gradients of their bags.
struct LookupItems {
  const LookupKey* keys = nullptr;  ///< of the table
  const float* gradient = nullptr;  ///< of the table: bag b's begins at [b * gradient_stride]
  std::int64_t gradient_stride = 0;
  int bag_bits = 0;

  [[nodiscard]] NEUROSHARD_HOST_DEVICE std::int64_t row(std::int64_t item) const {
    return static_cast<std::int64_t>(keys[item] >> bag_bits);
  }
  [[nodiscard]] NEUROSHARD_HOST_DEVICE const float* vector(std::int64_t item) const {
    const LookupKey bag = keys[item] & ((LookupKey{1} << bag_bits) - 1);
    return gradient + static_cast<std::int64_t>(bag) * gradient_stride;
  }
};

/// Items of the other levels.
struct PartialItems {
  const std::int64_t* keys = nullptr;
  const float* values = nullptr;
  std::int64_t num_columns = 0;

  [[nodiscard]] NEUROSHARD_HOST_DEVICE std::int64_t row(std::int64_t item) const {
    return keys[item] >> 1;  // kNoRow stays kNoRow
  }
  /// Null for an item without a value.
  [[nodiscard]] NEUROSHARD_HOST_DEVICE const float* vector(std::int64_t item) const {
    return (keys[item] & 1) != 0 ? nullptr : values + item * num_columns;
  }
};

/// The items of a segment, and the keys around them.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t row_before = kNoRow;
  std::int64_t row_after = kNoRow;
};

template <class Items>
NEUROSHARD_HOST_DEVICE Segment segment_of(const ReductionPlan& plan, const Items& items,
                                          std::int64_t number) {
  Segment segment;
  segment.begin = number * plan.items_per_segment;
  segment.end = segment.begin + plan.items_per_segment;
  if (segment.end > plan.num_items) segment.end = plan.num_items;
  if (segment.begin > 0) segment.row_before = items.row(segment.begin - 1);
  if (segment.end < plan.num_items) segment.row_after = items.row(segment.end);
  return segment;
}

/// Writes the keys of the segment's partial sums; none if it is the only segment. `next_level()`
/// gives the table's PartialSums: asked for where sums are left, which is seldom, so that no thread
/// holds them meanwhile.
template <class Group, class Next>
NEUROSHARD_GROUP_CODE void write_keys_of_partials(Group& group, const ReductionPlan& plan,
                                                  const Next& next_level, std::int64_t number,
                                                  std::int64_t came_in, std::int64_t goes_on) {
  if (plan.num_segments == 1 || !group.leads()) return;
  const PartialSums next = next_level();
  next.keys[2 * number] = came_in == kNoRow ? kNoRow : 2 * came_in;
  next.keys[2 * number + 1] =
      goes_on == kNoRow ? kNoRow : 2 * goes_on + (goes_on == came_in ? 1 : 0);
}

/// The factor of a row's gradient; updates the optimizer's state. `state` is the value that the
/// leading thread has read.
template <class Group>
NEUROSHARD_GROUP_CODE float update_rate(Group& group, const TableLayout& table,
                                        const UpdateRule& rule, std::int64_t row, float state,
                                        float squares) {
  if (rule.optimizer == Optimizer::sgd) return rule.learning_rate;
  float rate = 0.0F;
  if (group.leads()) {
    state += squares / static_cast<float>(table.num_columns);
    table.optimizer_state[row] = state;
    rate = rule.learning_rate / (sqrtf(state) + rule.epsilon);
  }
  return group.broadcast(rate);
}

template <class Group>
NEUROSHARD_GROUP_CODE float read_state(Group& group, const TableLayout& table,
                                       const UpdateRule& rule, std::int64_t row) {
  return rule.optimizer == Optimizer::rowwise_adagrad && group.leads() ? table.optimizer_state[row]
                                                                       : 0.0F;
}

/// For rows of one tile. Gradients of several items, and the weights of the rows that they
/// complete, are on their way at once.
template <class T, int E, class Group, class Items, class Next>
NEUROSHARD_GROUP_CODE void reduce_narrow(Group& group, const TableLayout& table,
                                         const ReductionPlan& plan, const Items& items,
                                         const UpdateRule& rule, const Next& next_level,
                                         std::int64_t number) {
  constexpr int kUnroll = E == 8 ? (kReductionUnroll + 1) / 2 : kReductionUnroll;
  const Segment segment = segment_of(plan, items, number);
  group.set_vectors(static_cast<int>(table.num_vectors()));
  // Counts within the segment are of 32 bits: registers are what limits the threads at work.
  const auto num_items = static_cast<int>(segment.end - segment.begin);
  const auto num_columns = static_cast<unsigned>(table.num_columns);
  const auto leave = [&](std::int64_t item, const auto& sum) {
    group.store(next_level().values + item * table.num_columns, sum);
  };
  typename Group::template Tile<E> sum;
  group.zero(sum);
  std::int64_t row_before = segment.row_before;
  std::int64_t row = num_items > 0 ? items.row(segment.begin) : kNoRow;
  bool began_here = false;
  bool came_in = false;
  // The load of an item must be waited for; that of its key should not be, and no register is left
  // for it.
  const auto prefetch_keys = [&](int item) {
    if (item < num_items) group.prefetch(items.keys + segment.begin + item);
  };
  prefetch_keys(kUnroll);
  for (int first = 0; first < num_items; first += kUnroll) {
    prefetch_keys(first + 2 * kUnroll);
    typename Group::template Tile<E> gradients[kUnroll];
    typename Group::template Weights<T, E> old[kUnroll];
    std::int64_t rows[kUnroll];  // of the table
    float states[kUnroll];
    bool starts[kUnroll];
    bool completes[kUnroll];
    NEUROSHARD_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const int item = first + u;
      const std::int64_t row_after =
          item + 1 < num_items ? items.row(segment.begin + item + 1) : segment.row_after;
      const bool has_row = item < num_items && row != kNoRow;
      const float* vector = has_row ? items.vector(segment.begin + item) : nullptr;
      group.zero(gradients[u]);
      if (vector != nullptr) group.load(gradients[u], vector);
      starts[u] = row != row_before;
      completes[u] = has_row && row != row_after;
      rows[u] = row - table.first_row;
      group.clear(old[u]);
      states[u] = 0.0F;
      if (completes[u]) {
        group.load(old[u], static_cast<const T*>(table.weights) + rows[u] * num_columns);
        states[u] = read_state(group, table, rule, rows[u]);
      }
      if (item < num_items) {
        row_before = row;
        row = row_after;
      }
    }
    NEUROSHARD_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      if (first + u >= num_items) break;
      if (starts[u]) {
        group.zero(sum);
        began_here = true;
      }
      group.add(sum, gradients[u]);
      if (!completes[u]) continue;
      if (began_here) {
        const float squares =
            rule.optimizer == Optimizer::rowwise_adagrad ? group.sum_of_squares(sum) : 0.0F;
        const float rate = update_rate(group, table, rule, rows[u], states[u], squares);
        group.descend(static_cast<T*>(table.weights) + rows[u] * num_columns, old[u], sum, rate);
      } else {
        came_in = true;
        leave(2 * number, sum);
      }
    }
  }
  // The last item's row.
  const bool goes_on = row_before != kNoRow && segment.row_after == row_before;
  if (goes_on && !began_here) came_in = true;
  if (goes_on) leave(began_here ? 2 * number + 1 : 2 * number, sum);
  write_keys_of_partials(group, plan, next_level, number,
                         came_in ? items.row(segment.begin - 1) : kNoRow,
                         goes_on ? row_before : kNoRow);
}

/// The sum of one tile over items [begin, end), which are all of one row.
template <int E, class Group, class Items>
NEUROSHARD_GROUP_CODE void sum_tile(Group& group, const Items& items, std::int64_t begin,
                                    std::int64_t end, std::int64_t first_column,
                                    typename Group::template Tile<E>& sum) {
  constexpr int kUnroll = 4;
  group.zero(sum);
  for (std::int64_t first = begin; first < end; first += kUnroll) {
    typename Group::template Tile<E> gradients[kUnroll];
    NEUROSHARD_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      const float* vector = first + u < end ? items.vector(first + u) : nullptr;
      group.zero(gradients[u]);
      if (vector != nullptr) group.load(gradients[u], vector + first_column);
    }
    NEUROSHARD_UNROLL
    for (const auto& gradient : gradients) group.add(sum, gradient);
  }
}

/// For rows of several tiles, one after the other. Row-wise Adagrad needs the squares of all of
/// them before it changes the first, so it sums the gradients twice.
template <class T, int E, class Group, class Items, class Next>
NEUROSHARD_GROUP_CODE void reduce_wide(Group& group, const TableLayout& table,
                                       const ReductionPlan& plan, const Items& items,
                                       const UpdateRule& rule, const Next& next_level,
                                       std::int64_t number) {
  const Segment segment = segment_of(plan, items, number);
  const auto place_of = [&](std::int64_t row) {
    return static_cast<T*>(table.weights) + (row - table.first_row) * table.num_columns;
  };
  const std::int64_t vectors = table.num_vectors();
  const auto for_each_tile = [&](const auto& body) {
    for (std::int64_t vector = 0; vector < vectors; vector += plan.lanes) {
      const std::int64_t left = vectors - vector;
      group.set_vectors(static_cast<int>(left < plan.lanes ? left : plan.lanes));
      body(vector * E);
    }
  };
  std::int64_t came_in = kNoRow;
  std::int64_t goes_on = kNoRow;
  for (std::int64_t begin = segment.begin; begin < segment.end;) {
    const std::int64_t row = items.row(begin);
    std::int64_t end = begin + 1;
    while (end < segment.end && items.row(end) == row) ++end;
    const bool ends_here = end < segment.end || segment.row_after != row;
    const bool began_here = begin > segment.begin || segment.row_before != row;
    typename Group::template Tile<E> sum;
    if (row == kNoRow) {
      begin = end;
      continue;
    }
    if (!ends_here) goes_on = row;
    if (!began_here) came_in = row;
    if (!ends_here || !began_here) {
      float* left =
          next_level().values + (began_here ? 2 * number + 1 : 2 * number) * table.num_columns;
      for_each_tile([&](std::int64_t column) {
        sum_tile<E>(group, items, begin, end, column, sum);
        group.store(left + column, sum);
      });
      begin = end;
      continue;
    }
    float squares = 0.0F;
    if (rule.optimizer == Optimizer::rowwise_adagrad) {
      for_each_tile([&](std::int64_t column) {
        sum_tile<E>(group, items, begin, end, column, sum);
        squares += group.sum_of_squares(sum);
      });
    }
    const float state = read_state(group, table, rule, row - table.first_row);
    const float rate = update_rate(group, table, rule, row - table.first_row, state, squares);
    for_each_tile([&](std::int64_t column) {
      T* place = place_of(row) + column;
      typename Group::template Weights<T, E> old;
      group.clear(old);
      group.load(old, place);
      sum_tile<E>(group, items, begin, end, column, sum);
      group.descend(place, old, sum, rate);
    });
    begin = end;
  }
  write_keys_of_partials(group, plan, next_level, number, came_in, goes_on);
}

template <class T, int E, class Group, class Items, class Next>
NEUROSHARD_GROUP_CODE void reduce_segment(Group& group, const TableLayout& table,
                                          const ReductionPlan& plan, const Items& items,
                                          const UpdateRule& rule, const Next& next_level,
                                          std::int64_t number) {
  if (table.num_vectors() <= plan.lanes) {
    reduce_narrow<T, E>(group, table, plan, items, rule, next_level, number);
  } else {
    reduce_wide<T, E>(group, table, plan, items, rule, next_level, number);
  }
}

/// Reduces a segment at one level, if there is one of that number, of a table of this kind.
template <VectorKind kind, class Group, class Items, class Next>
NEUROSHARD_GROUP_CODE void reduce_task(Group& group, const TableLayout& table,
                                       const ReductionPlan& plan, const Items& items,
                                       const UpdateRule& rule, const Next& next_level,
                                       std::int64_t number) {
  if (number >= plan.num_segments) return;
  if constexpr (kind == VectorKind::fp32) {
    reduce_segment<float, 4>(group, table, plan, items, rule, next_level, number);
  } else if constexpr (kind == VectorKind::fp16) {
    reduce_segment<Half, 8>(group, table, plan, items, rule, next_level, number);
  } else if (table.vector_elements == 4) {
    reduce_segment<Half, 4>(group, table, plan, items, rule, next_level, number);
  } else if (table.data_type == DataType::fp16) {
    reduce_segment<Half, 1>(group, table, plan, items, rule, next_level, number);
  } else {
    reduce_segment<float, 1>(group, table, plan, items, rule, next_level, number);
  }
}

/// The same of any table.
template <class Group, class Items, class Next>
NEUROSHARD_GROUP_CODE void reduce_task_of_any(Group& group, const TableLayout& table,
                                              const ReductionPlan& plan, const Items& items,
                                              const UpdateRule& rule, const Next& next_level,
                                              std::int64_t number) {
  switch (table.kind()) {
    case VectorKind::fp32:
      return reduce_task<VectorKind::fp32>(group, table, plan, items, rule, next_level, number);
    case VectorKind::fp16:
      return reduce_task<VectorKind::fp16>(group, table, plan, items, rule, next_level, number);
    case VectorKind::other:
      return reduce_task<VectorKind::other>(group, table, plan, items, rule, next_level, number);
  }
}

/// Arguments that the kernels of the backward pass share.
struct ReductionBuffers {
  const LookupKey* sorted_keys = nullptr;
  int bag_bits = 0;
  const float* gradient = nullptr;  ///< laid out as the pooled output
  std::int64_t gradient_stride = 0;
};

NEUROSHARD_HOST_DEVICE LookupItems lookup_items(const ReductionBuffers& buffers,
                                                const TableLayout& table) {
  return {buffers.sorted_keys + table.first_lookup, buffers.gradient + table.column_start,
          buffers.gradient_stride, buffers.bag_bits};
}

/// The partial sums of one level of all tables, and one table's part of them.
struct LevelBuffers {
  std::int64_t* keys = nullptr;  ///< ReductionLevel::num_items
  float* values = nullptr;       ///< ReductionLevel::num_values
};

NEUROSHARD_HOST_DEVICE PartialItems partial_items(const LevelBuffers& buffers,
                                                  const TableLayout& table,
                                                  const ReductionPlan& plan) {
  return {buffers.keys + plan.first_item, buffers.values + plan.first_value, table.num_columns};
}

NEUROSHARD_HOST_DEVICE PartialSums partial_sums(const LevelBuffers& buffers,
                                                const ReductionPlan& next_level) {
  return {buffers.keys + next_level.first_item, buffers.values + next_level.first_value};
}

}  // namespace neuroshard::cuda
