// Which tables a search with rows cuts before its first level, and into how many slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// A list to begin with: the rows of some tables in slices, and all pieces no larger than a share
/// of a device.
struct FirstCuts {
  int num_slices = 0;  ///< of the costliest tables; 0: as many as make them that small
  std::size_t sliced_tables = 0;
  int parts = 1;  ///< of the largest device
};

/// As many as `most_pieces` allow, counting a piece for each table, and at least one; those with
/// most slices of most tables are never left out.
[[nodiscard]] std::vector<FirstCuts> first_cuts(const Task& task, std::int64_t most_pieces);

}  // namespace neuroshard
