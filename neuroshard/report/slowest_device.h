// Which device a plan's cost is the time of: the one answer of tables, pages and their data.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// Of the devices with the longest total, equal to a billionth, the one that enters the forward
/// all-to-all last, as the others wait for it; of several such, the first. Needs a device.
[[nodiscard]] std::size_t slowest_device(std::span<const DeviceCost> devices);

/// Whether there are several devices, all of which end at the same time and enter the forward
/// all-to-all at the same time: none is slower than another.
[[nodiscard]] bool equally_slow(std::span<const DeviceCost> devices);

/// For a table with a row for each device: "<- slowest" at the slowest, unless all are equally
/// slow.
[[nodiscard]] std::vector<std::string> slowest_marks(std::span<const DeviceCost> devices);

/// What a table without a mark says below: "the 8 devices take equally long". Otherwise empty.
[[nodiscard]] std::string equally_slow_text(std::span<const DeviceCost> devices);

}  // namespace neuroshard
