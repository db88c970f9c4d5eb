// Where the rows of a table are cut into slices, and whether they may be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// True if the rows of the table may be cut into so many slices: no more than there are devices, of
/// no fewer rows than the table says.
[[nodiscard]] inline bool can_slice(const Task& task, const Table& table, int num_slices) {
  if (num_slices == 1) return true;
  return table.allow.rows && num_slices <= task.topology.world_size &&
         table.num_embeddings / num_slices >= std::max<std::int64_t>(table.min_shard_rows, 1);
}

/// The first row of slice `slice` of `num_slices`, whose rows differ by one at the most; for
/// `num_slices` itself, the number of rows.
[[nodiscard]] constexpr std::int64_t first_row_of_slice(std::int64_t num_rows,
                                                        std::int64_t num_slices,
                                                        std::int64_t slice) {
  return slice * (num_rows / num_slices) + std::min(slice, num_rows % num_slices);
}

}  // namespace neuroshard
