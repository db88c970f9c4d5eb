#include "neuroshard/core/machine/instruction_sets.h"

#include <hwy/detect_targets.h>
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace neuroshard {

std::int64_t supported_highway_targets() {
  std::int64_t targets = HWY_ENABLED_BASELINE;
#if HWY_ARCH_X86
  // The features that each target's functions are compiled with (hwy/ops/set_macros-inl.h).
  // __builtin_cpu_supports also asks whether the operating system saves the registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("ssse3")) return targets;
  targets |= HWY_SSSE3;
  if (!__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("sse4.2") ||
      !__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) {
    return targets;
  }
  targets |= HWY_SSE4;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;  // F16C: clang 14's builtin does not know it
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("fma") || !has_f16c) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    targets |= HWY_AVX3;
  }
#endif
  return targets;
}

}  // namespace neuroshard
