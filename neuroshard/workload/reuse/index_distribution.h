// How the rows of a table are accessed: in closed form, for any batch size.
#pragma once

#include <array>
#include <cstdint>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// The accesses of one batch to a table's rows, in expectation.
struct ReuseStatistics {
  double num_indices = 0.0;               ///< lookups: batch size * pooling factor
  double distinct_rows = 0.0;             ///< rows hit at least once
  std::array<double, kReuseBins> rows{};  ///< distinct rows by reuse bin; adds up to distinct_rows
  std::array<double, kReuseBins> indices{};  ///< lookups that hit such rows; adds up to num_indices
};

/// Closed form: the hits of a row with probability p among n lookups are taken as Poisson(n p). A
/// table that gives only a histogram returns it for the batch size of that histogram (any
/// `batch_size` is taken to be that one).
[[nodiscard]] ReuseStatistics reuse_statistics(const Table& table, std::int64_t batch_size);

/// `reuse_statistics(...).rows` as shares of the distinct rows.
[[nodiscard]] ReuseHistogram reuse_histogram(const Table& table, std::int64_t batch_size);
/// The same, of the table's statistics.
[[nodiscard]] ReuseHistogram reuse_histogram(const Table& table, const ReuseStatistics& statistics);

/// Share of the lookups that hit the hottest row, in (0, 1]; of a table that gives only a histogram
/// by `hottest_row_hits` (histogram_reuse.h).
[[nodiscard]] double hottest_row_share(const Table& table, std::int64_t batch_size);

/// The distribution that the table's batches are drawn from: its own, or one whose reuse at
/// `batch_size` reproduces its histogram. If it gives neither, that of its `row_access`, or else
/// uniform.
[[nodiscard]] IndexDistribution resolved_distribution(const Table& table, std::int64_t batch_size);

/// The table with that distribution in the place of its histogram, which is that of batches of
/// `batch_size` samples: it stands for the same use in batches of any size.
[[nodiscard]] Table for_any_batch_size(const Table& table, std::int64_t batch_size);

}  // namespace neuroshard
