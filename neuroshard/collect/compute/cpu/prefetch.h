// Asks for a cache line that is about to be written.
#pragma once

namespace neuroshard {

/// Starts to fetch the cache line of `at` and makes it this core's own, so that a store to it need
/// not ask for it a second time. Written out for x86-64, whose compilers turn
/// __builtin_prefetch(at, 1) into a prefetch for reading unless told to build for a newer machine
/// than the oldest; the instruction exists on every AMD x86-64 processor and on Intel's since
/// Broadwell, and does nothing on older ones.
inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace neuroshard
