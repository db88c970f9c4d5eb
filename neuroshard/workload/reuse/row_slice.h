// A slice of a table's rows as a table of its own.
#pragma once

#include <cstdint>

#include "neuroshard/core/table.h"
#include "neuroshard/workload/reuse/access_by_row.h"

namespace neuroshard {

/// The table that a slice with `share` of the rows and of the lookups is, where ids are hashes:
/// every slice has the whole table's mix of hot and cold rows. Exact for uniform use and access
/// classes; of other tables the slice reproduces the reuse histogram at `batch_size`. `share` in
/// (0, 1].
[[nodiscard]] Table row_slice(const Table& table, std::int64_t batch_size, double share);

/// Pooling factor of a slice with this share of a table's lookups: never 0, as no table's may be.
[[nodiscard]] double pooling_factor_of_slice(double pooling_factor, double access_share);

/// The table that rows [first, first + count) of a table with a row order are, with the lookups
/// that hit them. Ordered by frequency, so is the slice; of measured accesses, its rows are mixed.
[[nodiscard]] Table row_slice(const Table& table, const AccessByRow& accesses, std::int64_t first,
                              std::int64_t count);

}  // namespace neuroshard
