// A dense layer on a few rows, for small networks that are evaluated millions of times.
#pragma once

#include <cstddef>

namespace neuroshard::kernels {

/// Outputs of layers are padded to a multiple of this.
inline constexpr std::size_t kDensePadding = 16;

/// For each of `rows` rows: y[o] = bias[o] + sum_i x[i] * weights[i * outputs + o], at least 0 with
/// `relu`. `outputs` is a multiple of kDensePadding; row r begins at x + r * x_stride and at
/// y + r * y_stride. Results differ between instruction sets by rounding only.
void dense_rows(const float* x, std::size_t x_stride, std::size_t rows, std::size_t inputs,
                const float* weights, const float* bias, std::size_t outputs, bool relu, float* y,
                std::size_t y_stride);

/// As `dense_rows` for one row, for any number of outputs; `bias` may be null. Products are rounded
/// before they are summed, and sums have one order: the same result, bit for bit, on every
/// instruction set. (No fused multiply-add: the file is compiled with -ffp-contract=off.)
void dense_row_rounded(const float* x, std::size_t inputs, const float* weights, const float* bias,
                       std::size_t outputs, bool relu, float* y);

}  // namespace neuroshard::kernels
