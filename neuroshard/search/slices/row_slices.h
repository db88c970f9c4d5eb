// Into how many slices the rows of a table may be cut.
#pragma once

#include <algorithm>
#include <cstdint>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// Devices for each of which a table may have a slice of as many rows: on more, there would be more
/// slices to choose from than time.
inline constexpr int kMostEvenSlices = 64;

/// True if the rows of the table may be cut into `num_slices`: no more than there are devices, of
/// no fewer rows than the table says.
[[nodiscard]] inline bool can_slice(const Task& task, const Table& table, int num_slices) {
  if (num_slices == 1) return true;
  return table.allow.rows && num_slices <= task.topology.world_size &&
         table.num_embeddings / num_slices >= std::max<std::int64_t>(table.min_shard_rows, 1);
}

}  // namespace neuroshard
