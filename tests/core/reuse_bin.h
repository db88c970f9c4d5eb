// Helper: the bin of a reuse histogram that a row belongs to, for counting hits in drawn batches.
#pragma once

#include <bit>
#include <cstdint>

#include "neuroshard/core/table.h"

namespace neuroshard {

/// The bin of a row that is hit `count` >= 1 times.
[[nodiscard]] inline int reuse_bin(std::int64_t count) {
  const int bin = std::bit_width(static_cast<std::uint64_t>(count - 1));  // ceil(log2(count))
  return bin < kReuseBins ? bin : kReuseBins - 1;
}

}  // namespace neuroshard
