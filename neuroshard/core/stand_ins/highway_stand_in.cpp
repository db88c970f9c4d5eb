// What Highway's library does for the choice of kernels at run time, in its place: Debian has the
// library only shared. Compiled where nothing but glibc may be needed (NEUROSHARD_SELF_CONTAINED).
#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

#include "neuroshard/core/machine/instruction_sets.h"

namespace hwy {

namespace {

std::atomic<std::int64_t> targets_of_test = 0;
std::atomic<std::int64_t> disabled_targets = 0;
ChosenTarget chosen_target;

}  // namespace

std::int64_t SupportedTargets() {
  const std::int64_t chosen = targets_of_test.load();
  const std::int64_t targets =
      (chosen != 0 ? chosen : neuroshard::supported_highway_targets()) & ~disabled_targets.load();
  return targets != 0 ? targets : HWY_STATIC_TARGET;
}

void DisableTargets(std::int64_t disabled) {
  disabled_targets = disabled;
  chosen_target.DeInit();
}

void SetSupportedTargetsForTest(std::int64_t targets) {
  targets_of_test = targets;
  chosen_target.DeInit();
}

ChosenTarget& GetChosenTarget() { return chosen_target; }

}  // namespace hwy
