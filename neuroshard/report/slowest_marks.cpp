// Marks and lines that say which device is the slowest.
#include "neuroshard/report/slowest_marks.h"

#include <fmt/format.h>

#include "neuroshard/core/slowest_device.h"

namespace neuroshard {

std::vector<std::string> slowest_marks(std::span<const DeviceCost> devices) {
  std::vector<std::string> marks(devices.size());
  if (!devices.empty() && !equally_slow(devices)) marks[slowest_device(devices)] = "<- slowest";
  return marks;
}

std::string equally_slow_text(std::span<const DeviceCost> devices) {
  if (!equally_slow(devices)) return "";
  return fmt::format("the {} devices take equally long\n", devices.size());
}

}  // namespace neuroshard
