// Rows grouped by how often a batch is expected to hit them, and how such groups become whole rows.
#pragma once

#include <cstdint>
#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// Rows that all expect the same number of hits per batch.
struct RateClass {
  double rate = 0.0;  ///< expected hits of one row
  double rows = 0.0;  ///< number of rows, possibly a fraction
};

/// All hits that a batch is expected to make of these rows.
[[nodiscard]] double hits_of(const std::vector<RateClass>& classes);

/// Access classes of whole rows with the same lookups: the rows in order of their rate are cut
/// into whole ones, so only a row that spans two classes gets a rate between theirs. A last
/// fraction becomes a row of its own if it is at least one half or the only one, and is otherwise
/// added to the class before it. `classes` must hold lookups; any order.
[[nodiscard]] std::vector<AccessClass> whole_rows(std::vector<RateClass> classes);

/// The same, at most `most_rows` >= 1 rows: where rounding gives more, the last ones are joined.
[[nodiscard]] std::vector<AccessClass> whole_rows(std::vector<RateClass> classes,
                                                  std::int64_t most_rows);

}  // namespace neuroshard
