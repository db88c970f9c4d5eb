// One compilation of the matrix product; the macro names the instruction set.
#pragma once

#include <cstdint>

#define NEUROSHARD_DECLARE_MULTIPLY(name)                                                 \
  void name(const float* a, bool transpose_a, const float* b, bool transpose_b, float* c, \
            std::int64_t rows, std::int64_t columns, std::int64_t depth, bool add)

namespace neuroshard::kernels {

/// Column-major: c (rows x columns) = or += op(a) (rows x depth) op(b) (depth x columns).
NEUROSHARD_DECLARE_MULTIPLY(multiply_baseline);
NEUROSHARD_DECLARE_MULTIPLY(multiply_avx2);
NEUROSHARD_DECLARE_MULTIPLY(multiply_avx512);

}  // namespace neuroshard::kernels
