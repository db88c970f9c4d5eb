// How tables say which device is the slowest.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// For a table with a row for each device: "<- slowest" at the slowest, unless all are equally
/// slow.
[[nodiscard]] std::vector<std::string> slowest_marks(std::span<const DeviceCost> devices);

/// What a table without a mark says below: "the 8 devices take equally long". Otherwise empty.
[[nodiscard]] std::string equally_slow_text(std::span<const DeviceCost> devices);

}  // namespace neuroshard
