// libFuzzer's entry point for the reader of measured communication costs.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  neuroshard::fuzz::communication_costs({reinterpret_cast<const char*>(data), size});
  return 0;
}
