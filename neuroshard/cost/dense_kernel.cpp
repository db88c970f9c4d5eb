// A dense layer on one row, compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "neuroshard/cost/dense_kernel.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/highway.h>
// clang-format on

#include <algorithm>

#include "neuroshard/cost/dense_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace neuroshard::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Inputs whose products are summed before they are added to the others': as in Eigen 3.4's
/// product, by which the shipped models' plans were first found.
constexpr std::size_t rounded_block_of(std::size_t inputs) { return inputs < 128 ? inputs : 16; }

/// Outputs [0, kVectors * lanes) of one row, whose sums are independent of each other.
template <std::size_t kVectors, class D>
HWY_INLINE void rounded_block(D d, const float* HWY_RESTRICT x, std::size_t inputs,
                              const float* HWY_RESTRICT weights, const float* HWY_RESTRICT bias,
                              std::size_t outputs, bool relu, float* HWY_RESTRICT y) {
  static_assert(kVectors == 1 || kVectors == 4);
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t block = rounded_block_of(inputs);
  auto total0 = hn::Zero(d);
  auto total1 = hn::Zero(d);
  auto total2 = hn::Zero(d);
  auto total3 = hn::Zero(d);
  for (std::size_t first = 0; first < inputs; first += block) {
    const std::size_t last = std::min(first + block, inputs);
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto sum2 = hn::Zero(d);
    auto sum3 = hn::Zero(d);
    for (std::size_t i = first; i < last; ++i) {
      const float* HWY_RESTRICT w = weights + i * outputs;
      const auto factor = hn::Set(d, x[i]);
      sum0 = hn::Add(sum0, hn::Mul(factor, hn::LoadU(d, w)));
      if constexpr (kVectors == 4) {
        sum1 = hn::Add(sum1, hn::Mul(factor, hn::LoadU(d, w + lanes)));
        sum2 = hn::Add(sum2, hn::Mul(factor, hn::LoadU(d, w + 2 * lanes)));
        sum3 = hn::Add(sum3, hn::Mul(factor, hn::LoadU(d, w + 3 * lanes)));
      }
    }
    total0 = hn::Add(total0, sum0);
    if constexpr (kVectors == 4) {
      total1 = hn::Add(total1, sum1);
      total2 = hn::Add(total2, sum2);
      total3 = hn::Add(total3, sum3);
    }
  }
  const auto store = [&](auto total, std::size_t at) HWY_ATTR {
    if (bias != nullptr) total = hn::Add(total, hn::LoadU(d, bias + at));
    hn::StoreU(relu ? hn::Max(total, hn::Zero(d)) : total, d, y + at);
  };
  store(total0, 0);
  if constexpr (kVectors == 4) {
    store(total1, lanes);
    store(total2, 2 * lanes);
    store(total3, 3 * lanes);
  }
}

void dense_row_rounded(const float* x, std::size_t inputs, const float* weights, const float* bias,
                       std::size_t outputs, bool relu, float* y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  const auto bias_at = [&](std::size_t o) { return bias != nullptr ? bias + o : nullptr; };
  std::size_t o = 0;
  for (; o + 4 * lanes <= outputs; o += 4 * lanes) {
    rounded_block<4>(d, x, inputs, weights + o, bias_at(o), outputs, relu, y + o);
  }
  for (; o + lanes <= outputs; o += lanes) {
    rounded_block<1>(d, x, inputs, weights + o, bias_at(o), outputs, relu, y + o);
  }
  for (; o < outputs; ++o) {
    rounded_block<1>(one, x, inputs, weights + o, bias_at(o), outputs, relu, y + o);
  }
}

}  // namespace neuroshard::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroshard::kernels {

HWY_EXPORT(dense_row_rounded);

void dense_row_rounded(const float* x, std::size_t inputs, const float* weights, const float* bias,
                       std::size_t outputs, bool relu, float* y) {
  HWY_DYNAMIC_DISPATCH(dense_row_rounded)(x, inputs, weights, bias, outputs, relu, y);
}

}  // namespace neuroshard::kernels
#endif
