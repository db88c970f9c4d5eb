// Machines with an unusable CUDA driver: one line that says why, exit code 3.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/cli/run_cli.h"

namespace neuroshard::testing_cli {
namespace {

/// A machine with an unusable driver (fake_cuda_driver.cpp).
class FakeDriver : public testing::Test {
 public:
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

 protected:
  FakeDriver() {
    setenv("LD_LIBRARY_PATH", NEUROSHARD_FAKE_CUDA_DRIVER, 1);
    set("VERSION", 14'000);
  }
  ~FakeDriver() override {
    unsetenv("LD_LIBRARY_PATH");
    for (const char* name : {"VERSION", "START", "DEVICE"}) unsetenv(variable(name).c_str());
  }
  static void set(const char* name, int value) {
    setenv(variable(name).c_str(), std::to_string(value).c_str(), 1);
  }
  void expect_refusal_with(const std::string& message) const {
    expect_refusal(folder_,
                   {"collect", "compute", "--backend", "cuda", "-o", folder_.file("c.jsonl")},
                   message, 3);
  }

 private:
  static std::string variable(const char* name) { return std::string("FAKE_DRIVER_") + name; }
  CliFolder folder_;
};

TEST_F(FakeDriver, OlderThanTheToolkit) {
  set("VERSION", 12'040);
  expect_refusal_with("cuda: expected a driver for CUDA 1");
  expect_refusal_with("found one for 12.4");
}

TEST_F(FakeDriver, OfAnotherReleaseThanItsKernelModule) {
  set("START", 803);  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
  expect_refusal_with(
      "cuda: expected a driver whose library and kernel module are of one release, ");
}

TEST_F(FakeDriver, WithoutADevice) {
  set("START", 100);  // CUDA_ERROR_NO_DEVICE
  expect_refusal_with("cuda: expected a device, found none");
}

TEST_F(FakeDriver, WithABusyDevice) {
  set("DEVICE", 46);  // CUDA_ERROR_DEVICE_UNAVAILABLE
  expect_refusal_with("cuda: expected a device to itself, got one that is busy");
}

TEST_F(FakeDriver, WithADeviceOutOfMemory) {
  set("DEVICE", 2);  // CUDA_ERROR_OUT_OF_MEMORY
  expect_refusal_with("cuda: out of device memory");
}

TEST_F(FakeDriver, WithALostDevice) {
  set("DEVICE", 46);
  set("START", 999);  // CUDA_ERROR_UNKNOWN
  expect_refusal_with("the device may be lost");
}

}  // namespace
}  // namespace neuroshard::testing_cli
