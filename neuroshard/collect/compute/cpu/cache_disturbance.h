// Memory that is read between passes, so that a timed pass finds other data in the caches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "neuroshard/collect/compute/cpu/memory_arena.h"
#include "neuroshard/core/machine/parallel.h"

namespace neuroshard {

/// A training step meets its rows in memory, as the rest of the model has gone through the caches
/// since the last step. Here the passes of other sets do the same; where they touch too little,
/// this buffer is read, which is allocated when it is first needed.
class CacheDisturbance {
 public:
  /// `bytes` must have been touched between two passes; counted in whole blocks of 1 MiB.
  CacheDisturbance(std::int64_t bytes, ThreadPool& pool);

  /// Eight times the last level: caches do not throw out the oldest line first, and a virtual
  /// machine's is shared. After 5/4 of it, passes were still a tenth too fast.
  [[nodiscard]] static std::int64_t beyond_any_cache();

  [[nodiscard]] std::int64_t bytes_between_passes() const {
    return static_cast<std::int64_t>(bytes_);
  }
  /// Reads on in the buffer, around its end as often as needed; returns how many bytes, `bytes` in
  /// whole blocks.
  std::int64_t read(std::int64_t bytes);

 private:
  ThreadPool& pool_;
  std::size_t bytes_;
  std::size_t buffer_bytes_;
  HugeBuffer buffer_;
  std::size_t next_block_ = 0;  ///< the one read longest ago
};

}  // namespace neuroshard
