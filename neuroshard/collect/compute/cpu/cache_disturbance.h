// Sees to it that what is timed finds the caches full of other things.
#pragma once

#include <cstddef>
#include <cstdint>

#include "neuroshard/collect/compute/cpu/memory_arena.h"
#include "neuroshard/core/parallel.h"

namespace neuroshard {

/// A training step meets its rows in memory, as the rest of the model has gone through the caches
/// since the last step. Here other measurements, taken in turns, do the same; where they are too
/// few, a buffer is read, which is allocated when it is first needed. Counts bytes, as a clock that
/// only moves when memory is touched.
class CacheDisturbance {
 public:
  /// So many bytes must have been touched before a pass.
  CacheDisturbance(std::int64_t bytes, ThreadPool& pool);

  /// Eight times the last level: caches do not throw out the oldest line first, and a virtual
  /// machine's is shared. After 5/4 of it, passes were still a tenth too fast (docs/results.md).
  [[nodiscard]] static std::int64_t beyond_any_cache();

  [[nodiscard]] std::int64_t bytes_touched() const { return bytes_touched_; }
  /// Something has read or written so many distinct bytes.
  void touched(std::int64_t bytes) { bytes_touched_ += bytes; }
  /// Reads on in the buffer until `bytes` were touched since `then`, a value of bytes_touched().
  void displace_since(std::int64_t then);

 private:
  ThreadPool& pool_;
  std::size_t bytes_;
  std::size_t buffer_bytes_;
  HugeBuffer buffer_;
  std::size_t next_block_ = 0;  ///< the one read longest ago
  std::int64_t bytes_touched_ = 0;
};

}  // namespace neuroshard
