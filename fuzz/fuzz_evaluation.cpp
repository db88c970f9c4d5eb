// libFuzzer's entry point for the reader of evaluations.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  neuroshard::fuzz::evaluation({reinterpret_cast<const char*>(data), size});
  return 0;
}
