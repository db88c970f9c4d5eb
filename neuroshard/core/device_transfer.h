// Bytes that one device sends to another, outside of training.
#pragma once

#include <cstdint>

namespace neuroshard {

struct DeviceTransfer {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const DeviceTransfer&, const DeviceTransfer&) = default;
};

}  // namespace neuroshard
