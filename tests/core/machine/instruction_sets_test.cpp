// Instruction sets found without Highway's library, next to what the library finds.
#include "neuroshard/core/machine/instruction_sets.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace neuroshard {
namespace {

TEST(InstructionSets, AreThoseThatHighwayFinds) {
  EXPECT_EQ(supported_highway_targets() & HWY_TARGETS, hwy::SupportedTargets() & HWY_TARGETS);
}

TEST(InstructionSets, HaveTheCompilersBaseline) {
  EXPECT_EQ(supported_highway_targets() & HWY_ENABLED_BASELINE, HWY_ENABLED_BASELINE);
}

}  // namespace
}  // namespace neuroshard
