// Statistics of a table that follow from its reuse histogram alone, and a distribution with that
// histogram.
#pragma once

#include <cstdint>

#include "neuroshard/workload/reuse/index_distribution.h"

namespace neuroshard {

/// Mean hits of the rows of a bin when only the histogram is known: the mean of the counts in the
/// bin with weights 1 / count^2 (1, 2, 3.36, 6.11, ... about 0.7 times the upper edge), a rule
/// that reproduces the mean counts of the published locality statistics within 3 %. The last bin
/// has no upper edge; 65,536 is assumed.
[[nodiscard]] double mean_count_of_bin(int bin);

/// Statistics of `num_indices` lookups with this histogram. The number of distinct rows is the one
/// at which the bins' mean counts add up to `num_indices`; where that would exceed the table, the
/// mean counts are raised: towards their bins' upper edges, and what is missing then in the last
/// bin, if it has a row or more.
[[nodiscard]] ReuseStatistics histogram_statistics(const ReuseHistogram& histogram,
                                                   std::int64_t num_embeddings, double num_indices);

/// Hits of the hottest row by the bins alone: the most, over the bins, of the bin's mean count
/// times the rows of this bin and those above, at most one row. So a bin of a millionth of a row,
/// the tail of a distribution, hardly counts, and more lookups with one histogram never give fewer
/// hits.
[[nodiscard]] double hottest_row_hits(const ReuseStatistics& statistics);

/// Access classes whose closed form at `num_indices` lookups has approximately this histogram and
/// number of distinct rows, on at most `num_embeddings` rows: non-negative least squares over a
/// geometric grid of hits per row. Shares are within 0.03, mostly within 0.005, for tables of 100
/// rows or more; with fewer, whole rows are too coarse for that. A histogram that is impossible for
/// a table of this size, e.g. rows hit only once where there are more lookups than rows, is
/// replaced by a close one that is possible.
[[nodiscard]] IndexDistribution distribution_of_histogram(const ReuseHistogram& histogram,
                                                          std::int64_t num_embeddings,
                                                          double num_indices);

}  // namespace neuroshard
