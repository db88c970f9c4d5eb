// A slice of a table's rows as a table of its own.
#pragma once

#include <cstdint>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// The table that a slice with `share` of the rows and of the lookups is, where ids are hashes:
/// every slice has the whole table's mix of hot and cold rows. Exact for uniform use and access
/// classes; of other tables the slice reproduces the reuse histogram at `batch_size`. `share` in
/// (0, 1].
[[nodiscard]] Table row_slice(const Table& table, std::int64_t batch_size, double share);

}  // namespace neuroshard
