// Which instruction sets this machine has, of those that Highway compiles kernels for.
#pragma once

#include <cstdint>

namespace neuroshard {

/// Highway's targets (HWY_AVX2 and others, bits of hwy/detect_targets.h) that the processor and the
/// operating system run: SSSE3, SSE4, AVX2 and AVX3, which is AVX-512, and the compiler's baseline
/// always. It is what Highway's library says; links without it (highway_stand_in.cpp) go by this.
std::int64_t supported_highway_targets();

}  // namespace neuroshard
