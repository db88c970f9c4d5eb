// Huge-page memory for the measured operator.
#include "neuroshard/collect/compute/cpu/memory_arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/memory_limit.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

HugeBuffer::HugeBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const std::int64_t available = available_memory_bytes();
  const auto refuse = [&] {
    throw OutOfMemory(fmt::format("memory: expected {} free, got {}",
                                  format_bytes(static_cast<double>(bytes)),
                                  format_bytes(static_cast<double>(available))));
  };
  if (available > 0 && static_cast<std::int64_t>(bytes) > available) refuse();
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) refuse();
  madvise(mapping, bytes, MADV_HUGEPAGE);  // a hint: without it only address translation is slower
  data_ = static_cast<std::byte*>(mapping);
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void fill(HugeBuffer& buffer, bool as_fp16, ThreadPool& pool) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 21;
  constexpr std::uint64_t kFp32Exponent = 0x3F0000003F000000ULL;
  constexpr std::uint64_t kFp32Mantissa = 0x007FFFFF007FFFFFULL;
  constexpr std::uint64_t kFp16Exponent = 0x3800380038003800ULL;
  constexpr std::uint64_t kFp16Mantissa = 0x03FF03FF03FF03FFULL;
  const std::uint64_t exponent = as_fp16 ? kFp16Exponent : kFp32Exponent;
  const std::uint64_t mantissa = as_fp16 ? kFp16Mantissa : kFp32Mantissa;

  const std::size_t blocks = (buffer.size() + kBlockBytes - 1) / kBlockBytes;
  pool.for_each(blocks, [&](std::size_t block, int) {
    const std::size_t first = block * kBlockBytes / 8;
    const std::size_t last = std::min((block + 1) * kBlockBytes, buffer.size()) / 8;
    auto* words = reinterpret_cast<std::uint64_t*>(buffer.data());
    for (std::size_t i = first; i < last; ++i) words[i] = exponent | (mix64(i) & mantissa);
  });
}

}  // namespace neuroshard
