// A CUDA driver (libcuda.so.1) that answers what a test puts into its environment, in the numbers
// of CUresult, so that messages on missing parts can be tested on any machine:
//
//   FAKE_DRIVER_VERSION   of CUDA, that it supports (13000 for 13.0)
//   FAKE_DRIVER_START     what cuInit returns
//   FAKE_DRIVER_DEVICE    the error that whatever asks for a device gets (success would need
//                         answers); 999, CUDA_ERROR_UNKNOWN, unless it is given
#include <cstdlib>
#include <cstring>

namespace {

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  // NOLINTNEXTLINE(cert-err34-c): a test's own numbers
  return text == nullptr ? otherwise : std::atoi(text);
}

int start() { return number("FAKE_DRIVER_START", 0); }
int ask_device() { return number("FAKE_DRIVER_DEVICE", 999); }

}  // namespace

extern "C" {  // NOLINTBEGIN(readability-identifier-naming): the driver's names

int cuInit(unsigned) { return start(); }

int cuDriverGetVersion(int* version) {
  *version = number("FAKE_DRIVER_VERSION", 0);
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

/// The table in which the runtime finds the functions that it calls.
int cuGetProcAddress_v2(const char* symbol, void** function, int, unsigned long long, int* status) {
  if (std::strcmp(symbol, "cuInit") == 0) {
    *function = reinterpret_cast<void*>(cuInit);
  } else if (std::strcmp(symbol, "cuDriverGetVersion") == 0) {
    *function = reinterpret_cast<void*>(cuDriverGetVersion);
  } else if (std::strcmp(symbol, "cuDeviceGetCount") == 0) {
    *function = reinterpret_cast<void*>(cuDeviceGetCount);
  } else if (std::strncmp(symbol, "cuGetProcAddress", 16) == 0) {
    *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  } else {
    *function = reinterpret_cast<void*>(ask_device);
  }
  if (status != nullptr) *status = 0;
  return 0;
}

int cuGetProcAddress(const char* symbol, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // NOLINTEND(readability-identifier-naming)
