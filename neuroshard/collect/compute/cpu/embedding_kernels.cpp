// Inner loops of the fused embedding operator, compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "neuroshard/collect/compute/cpu/embedding_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/highway.h>
#include <hwy/cache_control.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "neuroshard/collect/compute/cpu/embedding_kernels.h"
#include "neuroshard/collect/compute/cpu/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace neuroshard::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kCacheLine = 64;

/// Bytes of rows to have on the way from memory at any time. A core tracks a few dozen missing
/// lines; the value was found with `bench_operator` and is flat between 2 and 8 KiB.
constexpr std::int64_t kBytesInFlight = 4096;
constexpr std::int64_t kMinPrefetchDistance = 8;
constexpr std::int64_t kMaxPrefetchDistance = 64;

HWY_INLINE std::int64_t prefetch_distance(std::int64_t row_bytes) {
  const std::int64_t lines = (row_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  return std::clamp(kBytesInFlight / lines, kMinPrefetchDistance, kMaxPrefetchDistance);
}

HWY_INLINE void prefetch_row(const void* row, std::int64_t row_bytes) {
  const char* bytes = static_cast<const char*>(row);
  for (std::int64_t offset = 0; offset < row_bytes; offset += kCacheLine) {
    hwy::Prefetch(bytes + offset);
  }
  hwy::Prefetch(bytes + row_bytes - 1);  // a row need not start on a line
}

HWY_INLINE void prefetch_row_to_write(const void* row, std::int64_t row_bytes) {
  const char* bytes = static_cast<const char*>(row);
  for (std::int64_t offset = 0; offset < row_bytes; offset += kCacheLine) {
    prefetch_to_write(bytes + offset);
  }
  prefetch_to_write(bytes + row_bytes - 1);
}

/// Loads of either data type as fp32 vectors, and the way back.
template <class D>
HWY_INLINE hn::Vec<D> load_weights(D d, const float* weights) {
  return hn::LoadU(d, weights);
}
template <class D>
HWY_INLINE void store_weights(D d, hn::Vec<D> value, float* weights) {
  hn::StoreU(value, d, weights);
}
template <class D>
HWY_INLINE hn::Vec<D> load_weights(D d, const hwy::float16_t* weights) {
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, weights));
}
template <class D>
HWY_INLINE void store_weights(D d, hn::Vec<D> value, hwy::float16_t* weights) {
  (void)d;
  const hn::Rebind<hwy::float16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, value), half, weights);
}

/// Calls visit(d, column, constant number of vectors) so that the columns are covered by as few
/// and as wide vectors as there are: blocks of up to 8 full vectors held in registers, then
/// narrower ones.
template <class Visit>
HWY_INLINE void for_column_blocks(std::int64_t num_columns, const Visit& visit) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(full));
  std::int64_t column = 0;
  for (; num_columns - column >= 8 * lanes; column += 8 * lanes) {
    visit(full, column, std::integral_constant<int, 8>());
  }
  if (num_columns - column >= 4 * lanes) {
    visit(full, column, std::integral_constant<int, 4>());
    column += 4 * lanes;
  }
  if (num_columns - column >= 2 * lanes) {
    visit(full, column, std::integral_constant<int, 2>());
    column += 2 * lanes;
  }
  if (num_columns - column >= lanes) {
    visit(full, column, std::integral_constant<int, 1>());
    column += lanes;
  }
  for (; lanes > 8 && num_columns - column >= 8; column += 8) {
    visit(eight, column, std::integral_constant<int, 1>());
  }
  for (; lanes > 4 && num_columns - column >= 4; column += 4) {
    visit(four, column, std::integral_constant<int, 1>());
  }
  for (; column < num_columns; ++column) visit(one, column, std::integral_constant<int, 1>());
}

/// N vectors of sums; the compiler keeps them in registers as every index is a constant.
template <class D, int N>
struct Sums {
  hn::Vec<D> v0, v1, v2, v3, v4, v5, v6, v7;

  HWY_INLINE explicit Sums(D d)
      : v0(hn::Zero(d)), v1(v0), v2(v0), v3(v0), v4(v0), v5(v0), v6(v0), v7(v0) {}

  /// Calls f(k, v_k) for k in [0, N).
  template <class F>
  HWY_INLINE void each(const F& f) {
    f(0, v0);
    if constexpr (N > 1) f(1, v1);
    if constexpr (N > 2) {
      f(2, v2);
      f(3, v3);
    }
    if constexpr (N > 4) {
      f(4, v4);
      f(5, v5);
      f(6, v6);
      f(7, v7);
    }
  }
};

template <class W>
HWY_INLINE void forward_typed(const ForwardBlock& block) {
  const W* HWY_RESTRICT weights = static_cast<const W*>(block.weights);
  const std::int64_t columns = block.num_columns;
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(sizeof(W));
  const std::int64_t distance = prefetch_distance(row_bytes);
  const std::int64_t end = block.offsets[block.last_bag];
  const std::int64_t begin = block.offsets[block.first_bag];
  for (std::int64_t i = begin; i < std::min(begin + distance, end); ++i) {
    prefetch_row(weights + block.indices[i] * columns, row_bytes);
  }
  for (std::int64_t bag = block.first_bag; bag < block.last_bag; ++bag) {
    const std::int64_t first = block.offsets[bag];
    const std::int64_t last = block.offsets[bag + 1];
    float* HWY_RESTRICT output = block.output + bag * block.output_stride;
    bool is_first_block = true;
    for_column_blocks(columns, [&](auto d, std::int64_t column, auto count) HWY_ATTR {
      using D = decltype(d);
      constexpr int kCount = decltype(count)::value;
      const std::size_t lanes = hn::Lanes(d);
      Sums<D, kCount> sums(d);
      for (std::int64_t i = first; i < last; ++i) {
        if (is_first_block && i + distance < end) {
          prefetch_row(weights + block.indices[i + distance] * columns, row_bytes);
        }
        const W* row = weights + block.indices[i] * columns + column;
        sums.each([&](int k, hn::Vec<D>& sum)
                      HWY_ATTR { sum = hn::Add(sum, load_weights(d, row + k * lanes)); });
      }
      sums.each([&](int k, hn::Vec<D>& sum)
                    HWY_ATTR { hn::StoreU(sum, d, output + column + k * lanes); });
      is_first_block = false;
    });
  }
}

void forward(const ForwardBlock& block) {
  if (block.data_type == DataType::fp32) {
    forward_typed<float>(block);
  } else {
    forward_typed<hwy::float16_t>(block);
  }
}

/// row_gradient = sum of the gradients of the bags of keys [first, last).
HWY_INLINE void sum_gradients(const BackwardBlock& block, std::size_t first, std::size_t last) {
  const LookupKey bag_mask = (LookupKey{1} << block.bag_bits) - 1;
  for_column_blocks(block.num_columns, [&](auto d, std::int64_t column, auto count) HWY_ATTR {
    using D = decltype(d);
    constexpr int kCount = decltype(count)::value;
    const std::size_t lanes = hn::Lanes(d);
    Sums<D, kCount> sums(d);
    for (std::size_t i = first; i < last; ++i) {
      const auto bag = static_cast<std::int64_t>(block.sorted_keys[i] & bag_mask);
      const float* row = block.gradient + bag * block.gradient_stride + column;
      sums.each([&](int k, hn::Vec<D>& sum)
                    HWY_ATTR { sum = hn::Add(sum, hn::LoadU(d, row + k * lanes)); });
    }
    sums.each([&](int k, hn::Vec<D>& sum)
                  HWY_ATTR { hn::StoreU(sum, d, block.row_gradient + column + k * lanes); });
  });
}

HWY_INLINE float mean_square(const float* HWY_RESTRICT values, std::int64_t count) {
  float total = 0.0F;
  for_column_blocks(count, [&](auto d, std::int64_t column, auto blocks) HWY_ATTR {
    const std::size_t lanes = hn::Lanes(d);
    auto sum = hn::Zero(d);
    for (int k = 0; k < decltype(blocks)::value; ++k) {
      const auto value = hn::LoadU(d, values + column + k * lanes);
      sum = hn::MulAdd(value, value, sum);
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  });
  return total / static_cast<float>(count);
}

template <class W>
HWY_INLINE void update_row(W* HWY_RESTRICT weights, const float* HWY_RESTRICT gradient,
                           std::int64_t num_columns, float rate) {
  for_column_blocks(num_columns, [&](auto d, std::int64_t column, auto blocks) HWY_ATTR {
    const std::size_t lanes = hn::Lanes(d);
    const auto minus_rate = hn::Set(d, -rate);
    for (int k = 0; k < decltype(blocks)::value; ++k) {
      W* at = weights + column + k * lanes;
      const auto step = hn::LoadU(d, gradient + column + k * lanes);
      store_weights(d, hn::MulAdd(minus_rate, step, load_weights(d, at)), at);
    }
  });
}

template <class W>
HWY_INLINE void backward_typed(const BackwardBlock& block) {
  W* weights = static_cast<W*>(block.weights);
  const std::span<const LookupKey> keys = block.sorted_keys;
  const std::int64_t columns = block.num_columns;
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(sizeof(W));
  const std::int64_t gradient_bytes = columns * static_cast<std::int64_t>(sizeof(float));
  const auto distance = static_cast<std::size_t>(prefetch_distance(row_bytes + gradient_bytes));
  const LookupKey bag_mask = (LookupKey{1} << block.bag_bits) - 1;
  const bool adagrad = block.optimizer == Optimizer::rowwise_adagrad;

  const auto prefetch_key = [&](std::size_t i) HWY_ATTR {
    const auto bag = static_cast<std::int64_t>(keys[i] & bag_mask);
    prefetch_row(block.gradient + bag * block.gradient_stride, gradient_bytes);
    const auto row = static_cast<std::int64_t>(keys[i] >> block.bag_bits);
    if (i > 0 && (keys[i - 1] >> block.bag_bits) == static_cast<LookupKey>(row)) return;
    prefetch_row_to_write(weights + row * columns, row_bytes);
    if (adagrad) prefetch_to_write(block.optimizer_state + row);
  };

  std::size_t prefetched = 0;
  for (std::size_t first = 0; first < keys.size();) {
    const LookupKey row = keys[first] >> block.bag_bits;
    std::size_t last = first + 1;
    while (last < keys.size() && (keys[last] >> block.bag_bits) == row) ++last;
    for (; prefetched < std::min(last + distance, keys.size()); ++prefetched) {
      prefetch_key(prefetched);
    }
    sum_gradients(block, first, last);
    float rate = block.learning_rate;
    if (adagrad) {
      float& state = block.optimizer_state[row];
      state += mean_square(block.row_gradient, columns);
      rate /= std::sqrt(state) + block.epsilon;
    }
    update_row(weights + static_cast<std::int64_t>(row) * columns, block.row_gradient, columns,
               rate);
    first = last;
  }
}

void backward(const BackwardBlock& block) {
  if (block.data_type == DataType::fp32) {
    backward_typed<float>(block);
  } else {
    backward_typed<hwy::float16_t>(block);
  }
}

const char* instruction_set() { return hwy::TargetName(HWY_TARGET); }

}  // namespace neuroshard::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroshard::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(instruction_set);

void forward(const ForwardBlock& block) { HWY_DYNAMIC_DISPATCH(forward)(block); }
void backward(const BackwardBlock& block) { HWY_DYNAMIC_DISPATCH(backward)(block); }
const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(instruction_set)(); }

}  // namespace neuroshard::kernels
#endif
