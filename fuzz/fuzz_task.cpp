// libFuzzer's entry point for the reader of tasks.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  neuroshard::fuzz::task({reinterpret_cast<const char*>(data), size});
  return 0;
}
