// What moves where before a plan that was made from an older one can be used, as text.
#pragma once

#include <cstddef>
#include <string>

#include "neuroshard/io/plan_io.h"

namespace neuroshard {

/// A line with the sum, and a table of pairs of devices; of more than `max_pairs`, those of most
/// bytes, and the number of the others.
[[nodiscard]] std::string moves_text(const PlanMoves& moves, std::size_t max_pairs = 20);

}  // namespace neuroshard
