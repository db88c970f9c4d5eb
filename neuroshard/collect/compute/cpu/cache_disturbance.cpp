// Reads memory that the caches do not hold.
#include "neuroshard/collect/compute/cpu/cache_disturbance.h"

#include <algorithm>

#include "neuroshard/collect/compute/hardware_info.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kLeastCacheBytes = std::int64_t{32} << 20;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kLineWords = 8;

/// Of the last level, as the system reports it.
std::int64_t cache_bytes() { return std::max(cpu_info().l3_bytes, kLeastCacheBytes); }

std::size_t whole_blocks(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

std::int64_t CacheDisturbance::beyond_any_cache() { return 8 * cache_bytes(); }

CacheDisturbance::CacheDisturbance(std::int64_t bytes, ThreadPool& pool)
    : pool_(pool),
      bytes_(whole_blocks(bytes)),
      buffer_bytes_(whole_blocks(std::min(bytes, 2 * cache_bytes()))) {}

std::int64_t CacheDisturbance::read(std::int64_t bytes) {
  if (buffer_.size() == 0) {
    buffer_ = HugeBuffer(buffer_bytes_);
    fill(buffer_, false, pool_);
  }
  const std::size_t all = buffer_bytes_ / kBlockBytes;
  const std::size_t count = whole_blocks(bytes) / kBlockBytes;
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(buffer_.data());
  pool_.for_each(count, [&](std::size_t i, int) {
    const std::size_t first = (next_block_ + i) % all * (kBlockBytes / sizeof(std::uint64_t));
    for (std::size_t at = 0; at < kBlockBytes / sizeof(std::uint64_t); at += kLineWords) {
      (void)words[first + at];
    }
  });
  next_block_ = (next_block_ + count) % all;
  return static_cast<std::int64_t>(count * kBlockBytes);
}

}  // namespace neuroshard
