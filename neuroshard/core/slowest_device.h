// Which device a plan's cost is the time of: the one answer of tables, pages,
// their data and explanations.
#pragma once

#include <cstddef>
#include <span>

#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// When the device enters the forward all-to-all [ms after the start]; and the last of them.
[[nodiscard]] double entered_ms(const DeviceCost& device);
[[nodiscard]] double last_entered_ms(std::span<const DeviceCost> devices);

/// Of the devices with the longest total, equal to a billionth, the one that enters the forward
/// all-to-all last, as the others wait for it; of several such, the first. Needs a device.
[[nodiscard]] std::size_t slowest_device(std::span<const DeviceCost> devices);

/// Whether there are several devices, all of which end at the same time and enter the forward
/// all-to-all at the same time: none is slower than another.
[[nodiscard]] bool equally_slow(std::span<const DeviceCost> devices);

}  // namespace neuroshard
