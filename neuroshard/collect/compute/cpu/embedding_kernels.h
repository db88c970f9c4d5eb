// The inner loops of the fused embedding operator, one call per block of work. Vectorised with
// Google Highway; the best instruction set of the machine is chosen at run time.
#pragma once

#include <cstdint>
#include <span>

#include "neuroshard/core/table.h"

namespace neuroshard::kernels {

/// Pools bags [first_bag, last_bag) of one table piece.
struct ForwardBlock {
  const void* weights = nullptr;  ///< rows x num_columns, row-major, of `data_type`
  DataType data_type = DataType::fp32;
  std::int64_t num_columns = 0;
  const std::int64_t* indices = nullptr;  ///< all bags' rows, one bag after the other
  const std::int64_t* offsets = nullptr;  ///< bag b is indices[offsets[b] .. offsets[b + 1])
  std::int64_t first_bag = 0;
  std::int64_t last_bag = 0;
  float* output = nullptr;         ///< element [b * output_stride + c] is bag b's column c
  std::int64_t output_stride = 0;  ///< elements
};

/// output[b] = sum of the bag's rows, in fp32; 0 for an empty bag.
void forward(const ForwardBlock& block);

/// A lookup as one word: the row in the high bits, the bag in the low `bag_bits`.
using LookupKey = std::uint64_t;

/// Updates the rows that occur in a run of lookups sorted by row; all lookups of a row are in it.
struct BackwardBlock {
  void* weights = nullptr;  ///< rows x num_columns, row-major, of `data_type`; updated in place
  float* optimizer_state = nullptr;  ///< one per row for row-wise Adagrad, else unused
  DataType data_type = DataType::fp32;
  Optimizer optimizer = Optimizer::sgd;
  std::int64_t num_columns = 0;
  std::span<const LookupKey> sorted_keys;
  int bag_bits = 0;
  const float* gradient = nullptr;  ///< [b * gradient_stride + c]: gradient of bag b's column c
  std::int64_t gradient_stride = 0;
  float learning_rate = 0.0F;
  float epsilon = 0.0F;
  float* row_gradient = nullptr;  ///< scratch of num_columns elements
};

/// For each distinct row: g = sum of its bags' gradients, then one update,
///   SGD:              w -= learning_rate * g
///   row-wise Adagrad: s += mean(g^2);  w -= learning_rate / (sqrt(s) + epsilon) * g
/// fp16 weights are rounded to nearest after the update in fp32.
void backward(const BackwardBlock& block);

/// The instruction set in use, e.g. "AVX3_ZEN4".
[[nodiscard]] const char* instruction_set();

}  // namespace neuroshard::kernels
