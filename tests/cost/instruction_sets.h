// Tests of kernels, repeated on every instruction set that this machine has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace neuroshard::testing_kernels {

/// Has kernels compiled for one instruction set run while it lives.
class OnInstructionSet {
 public:
  explicit OnInstructionSet(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ~OnInstructionSet() { hwy::SetSupportedTargetsForTest(0); }
  OnInstructionSet(const OnInstructionSet&) = delete;
  OnInstructionSet& operator=(const OnInstructionSet&) = delete;
};

template <typename Test>
void on_every_instruction_set(const Test& test) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const OnInstructionSet guard(target);
    test();
  }
}

}  // namespace neuroshard::testing_kernels
