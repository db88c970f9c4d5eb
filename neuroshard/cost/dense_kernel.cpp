// A dense layer on a few rows, compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "neuroshard/cost/dense_kernel.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/highway.h>
// clang-format on

#include "neuroshard/cost/dense_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace neuroshard::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Outputs [o, o + lanes) of kRows rows, whose sums are independent of each other.
template <std::size_t kRows, class D>
HWY_INLINE void dense_block(D d, const float* HWY_RESTRICT x, std::size_t x_stride,
                            std::size_t inputs, const float* HWY_RESTRICT weights,
                            const float* HWY_RESTRICT bias, std::size_t outputs, bool relu,
                            float* HWY_RESTRICT y, std::size_t y_stride) {
  static_assert(kRows == 1 || kRows == 4);
  auto sum0 = hn::LoadU(d, bias);
  auto sum1 = sum0;
  auto sum2 = sum0;
  auto sum3 = sum0;
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto w = hn::LoadU(d, weights + i * outputs);
    sum0 = hn::MulAdd(hn::Set(d, x[i]), w, sum0);
    if constexpr (kRows == 4) {
      sum1 = hn::MulAdd(hn::Set(d, x[x_stride + i]), w, sum1);
      sum2 = hn::MulAdd(hn::Set(d, x[2 * x_stride + i]), w, sum2);
      sum3 = hn::MulAdd(hn::Set(d, x[3 * x_stride + i]), w, sum3);
    }
  }
  const auto store = [&](auto sum, std::size_t row) HWY_ATTR {
    hn::StoreU(relu ? hn::Max(sum, hn::Zero(d)) : sum, d, y + row * y_stride);
  };
  store(sum0, 0);
  if constexpr (kRows == 4) {
    store(sum1, 1);
    store(sum2, 2);
    store(sum3, 3);
  }
}

void dense_rows(const float* x, std::size_t x_stride, std::size_t rows, std::size_t inputs,
                const float* weights, const float* bias, std::size_t outputs, bool relu, float* y,
                std::size_t y_stride) {
  const hn::CappedTag<float, kDensePadding> d;
  for (std::size_t o = 0; o < outputs; o += hn::Lanes(d)) {
    std::size_t row = 0;
    for (; row + 4 <= rows; row += 4) {
      dense_block<4>(d, x + row * x_stride, x_stride, inputs, weights + o, bias + o, outputs, relu,
                     y + row * y_stride + o, y_stride);
    }
    for (; row < rows; ++row) {
      dense_block<1>(d, x + row * x_stride, x_stride, inputs, weights + o, bias + o, outputs, relu,
                     y + row * y_stride + o, y_stride);
    }
  }
}

}  // namespace neuroshard::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroshard::kernels {

HWY_EXPORT(dense_rows);

void dense_rows(const float* x, std::size_t x_stride, std::size_t rows, std::size_t inputs,
                const float* weights, const float* bias, std::size_t outputs, bool relu, float* y,
                std::size_t y_stride) {
  HWY_DYNAMIC_DISPATCH(dense_rows)
  (x, x_stride, rows, inputs, weights, bias, outputs, relu, y, y_stride);
}

}  // namespace neuroshard::kernels
#endif
