// Reuse statistics of a table whose rows are accessed by a power law.
#pragma once

#include <cstdint>

#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

/// `num_indices` lookups in `num_embeddings` rows, the row of rank r = 1, 2, ... having weight
/// r^-exponent, exponent > 0. The first ranks are summed one by one, the others by quadrature over
/// geometric ranges of ranks: shares of rows and of lookups are within 1e-4 for any number of rows.
[[nodiscard]] ReuseStatistics zipf_reuse(double exponent, std::int64_t num_embeddings,
                                         double num_indices);

/// Sum of rank^-exponent over the ranks 1 to `num_embeddings`.
[[nodiscard]] double zipf_weight(double exponent, std::int64_t num_embeddings);

/// Sum of the weights of the ranks first + 1, first + 2, ..., first + count, without
/// the loss of a difference of two sums.
[[nodiscard]] double zipf_range_weight(double exponent, std::int64_t first, std::int64_t count);

}  // namespace neuroshard
