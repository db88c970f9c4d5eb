// A dense layer on one row, for small networks that are evaluated millions of times.
#pragma once

#include <cstddef>

namespace neuroshard::kernels {

/// y[o] = bias[o] + sum_i x[i] * weights[i * outputs + o], at least 0 with `relu`, for any number
/// of outputs; `bias` may be null. Products are rounded before they are summed, and sums have one
/// order: the same result, bit for bit, on every instruction set. (No fused multiply-add: the file
/// is compiled with -ffp-contract=off.)
void dense_row_rounded(const float* x, std::size_t inputs, const float* weights, const float* bias,
                       std::size_t outputs, bool relu, float* y);

}  // namespace neuroshard::kernels
