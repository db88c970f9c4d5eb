// A vector whose memory begins at a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace neuroshard {

inline constexpr std::size_t kCacheLineBytes = 64;

template <typename Value>
struct CacheLineAllocator {
  using value_type = Value;

  CacheLineAllocator() = default;
  template <typename Other>
  // NOLINTNEXTLINE(google-explicit-constructor): containers rebind allocators implicitly
  CacheLineAllocator(const CacheLineAllocator<Other>& /*other*/) {}

  Value* allocate(std::size_t count) {
    return static_cast<Value*>(
        ::operator new (count * sizeof(Value), std::align_val_t{kCacheLineBytes}));
  }
  void deallocate(Value* values, std::size_t /*count*/) {
    ::operator delete (values, std::align_val_t{kCacheLineBytes});
  }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

template <typename Value>
using AlignedVector = std::vector<Value, CacheLineAllocator<Value>>;

}  // namespace neuroshard
