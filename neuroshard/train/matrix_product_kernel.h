// One compilation of the matrix product; the macro names the instruction set.
#pragma once

#include <cstdint>
#include <vector>

#define NEUROSHARD_DECLARE_MULTIPLY(name)                                                 \
  void name(const float* a, bool transpose_a, const float* b, bool transpose_b, float* c, \
            std::int64_t rows, std::int64_t columns, std::int64_t depth, bool add)

namespace neuroshard::kernels {

/// Column-major: c (rows x columns) = or += op(a) (rows x depth) op(b) (depth x columns).
NEUROSHARD_DECLARE_MULTIPLY(multiply_baseline);
NEUROSHARD_DECLARE_MULTIPLY(multiply_avx2);
NEUROSHARD_DECLARE_MULTIPLY(multiply_avx512);

using Multiply = decltype(&multiply_baseline);

/// A compilation that this machine can run.
struct AvailableProduct {
  const char* instruction_set;
  Multiply multiply;
};

/// From the slowest to the fastest.
[[nodiscard]] std::vector<AvailableProduct> available_products();

}  // namespace neuroshard::kernels
