// Memory that the measured operator works in: one large block on huge pages, filled once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "neuroshard/core/machine/parallel.h"

namespace neuroshard {

/// An anonymous mapping that asks for huge pages, as training frameworks' large tables get them;
/// without, address translation would be measured rather than the embedding operator.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  /// Throws OutOfMemory if the machine does not have this much memory to spare.
  explicit HugeBuffer(std::size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data_); }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Fills a buffer with numbers in [0.5, 1), as fp32 or fp16, on all threads, so that every page
/// exists and no value is denormal.
void fill(HugeBuffer& buffer, bool as_fp16, ThreadPool& pool);

}  // namespace neuroshard
