// What is recorded of a machine is read, or it is an error.
#include "neuroshard/collect/compute/hardware_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/core/error.h"
#include "tests/io/no_descriptors.h"

namespace neuroshard {
namespace {

TEST(HardwareInfo, AProcessorWhoseNameCannotBeReadIsAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan needs descriptors to look at objects";
#endif
  EXPECT_FALSE(cpu_info().name.empty());
  std::string message;
  {
    const NoDescriptors none;
    try {
      (void)cpu_info();
    } catch (const MachineError& error) {
      message = error.what();
    }
  }
  EXPECT_EQ(message, "/proc/cpuinfo: expected the name of the processor, got Too many open files");
}

TEST(HardwareInfo, ASystemWithoutTheFileHasAnUnknownProcessor) {
  EXPECT_EQ(cpu_info("/no/such/file").name, "unknown processor");
  EXPECT_THROW((void)cpu_info("/proc"), MachineError);
}

}  // namespace
}  // namespace neuroshard
