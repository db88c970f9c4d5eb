// The receiver's addition of partial sums: each slice of rows of a table sends a sum of its own
// rows for every sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/core/machine/parallel.h"

namespace neuroshard {

/// Columns of samples in memory: column c of sample s is values[s * stride + c].
template <typename Value>
struct SampleColumns {
  Value* values = nullptr;
  std::int64_t stride = 0;
};

/// One sum: of every sample and column, that of the parts, in their order.
struct PartialSums {
  std::vector<SampleColumns<const float>> parts;
  SampleColumns<float> sum;
  std::int64_t num_columns = 0;
};

/// The same sums, in which those of columns side by side, of the parts and of the sum, are one.
[[nodiscard]] std::vector<PartialSums> joined(std::vector<PartialSums> sums);

/// Adds up samples [0, num_samples) of each. A sum with one part is a copy. Reads every part and
/// writes the sum once.
void add_partial_sums(std::span<const PartialSums> sums, std::int64_t num_samples,
                      ThreadPool& pool);

}  // namespace neuroshard
