// The element-wise work of a dense layer.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "neuroshard/train/layer_kernel.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
// clang-format off
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cstddef>

#include "neuroshard/train/layer_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace neuroshard::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// columns = max(columns + bias, 0)
void add_and_rectify(float* HWY_RESTRICT columns, const float* HWY_RESTRICT bias, std::size_t rows,
                     std::size_t count) {
  const hn::ScalableTag<float> d;
  for (; count > 0; --count, columns += rows) {
    std::size_t i = 0;
    for (; i + hn::Lanes(d) <= rows; i += hn::Lanes(d)) {
      const auto sum = hn::Add(hn::LoadU(d, columns + i), hn::LoadU(d, bias + i));
      hn::StoreU(hn::Max(sum, hn::Zero(d)), d, columns + i);
    }
    for (; i < rows; ++i) columns[i] = std::max(columns[i] + bias[i], 0.0F);
  }
}

/// Selects without a branch: which units are active cannot be predicted.
void keep_active(const float* HWY_RESTRICT activation, std::size_t stride,
                 float* HWY_RESTRICT gradient, std::size_t rows, std::size_t count) {
  const hn::ScalableTag<float> d;
  for (; count > 0; --count, activation += stride, gradient += rows) {
    std::size_t i = 0;
    for (; i + hn::Lanes(d) <= rows; i += hn::Lanes(d)) {
      const auto active = hn::Gt(hn::LoadU(d, activation + i), hn::Zero(d));
      hn::StoreU(hn::IfThenElseZero(active, hn::LoadU(d, gradient + i)), d, gradient + i);
    }
    for (; i < rows; ++i) gradient[i] = activation[i] > 0.0F ? gradient[i] : 0.0F;
  }
}

/// sum += each column
void add_columns(float* HWY_RESTRICT sum, const float* HWY_RESTRICT columns, std::size_t rows,
                 std::size_t count) {
  const hn::ScalableTag<float> d;
  for (; count > 0; --count, columns += rows) {
    std::size_t i = 0;
    for (; i + hn::Lanes(d) <= rows; i += hn::Lanes(d)) {
      hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, columns + i)), d, sum + i);
    }
    for (; i < rows; ++i) sum[i] += columns[i];
  }
}

}  // namespace neuroshard::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace neuroshard::kernels {

HWY_EXPORT(add_and_rectify);
HWY_EXPORT(keep_active);
HWY_EXPORT(add_columns);

void add_and_rectify(Eigen::MatrixXf& columns, const Eigen::MatrixXf& bias) {
  HWY_DYNAMIC_DISPATCH(add_and_rectify)
  (columns.data(), bias.data(), static_cast<std::size_t>(columns.rows()),
   static_cast<std::size_t>(columns.cols()));
}

void keep_active(const Eigen::MatrixXf& activation, Eigen::MatrixXf& gradient) {
  HWY_DYNAMIC_DISPATCH(keep_active)
  (activation.data(), static_cast<std::size_t>(activation.rows()), gradient.data(),
   static_cast<std::size_t>(gradient.rows()), static_cast<std::size_t>(gradient.cols()));
}

void sum_pieces(const Eigen::MatrixXf& columns, const std::vector<int>& first_piece,
                Eigen::MatrixXf& sums) {
  sums.setZero(columns.rows(), static_cast<Eigen::Index>(first_piece.size()) - 1);
  for (Eigen::Index sample = 0; sample < sums.cols(); ++sample) {
    const int first = first_piece[sample];
    HWY_DYNAMIC_DISPATCH(add_columns)
    (sums.col(sample).data(), columns.data() + first * columns.rows(),
     static_cast<std::size_t>(columns.rows()),
     static_cast<std::size_t>(first_piece[sample + 1] - first));
  }
}

}  // namespace neuroshard::kernels
#endif
