// Inputs that memory has no room for: refused with the figure, before it is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/run_mpi.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::HasSubstr;

TEST(CliInputMemory, ATextThatMemoryHasNoRoomForIsRefused) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take more address space than the limit";
#endif
  const CliFolder folder;
  std::string text = "[{}";
  while (text.size() < 10'000'000) text += ",{}";
  const std::string task = folder.write("task.json", text + "]");
  const CommandResult result = run_program(
      {"bash", "-c", "ulimit -v 200000; exec \"$0\" \"$@\"", NEUROSHARD_EXECUTABLE, "plan", task});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_line(result.err);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("task.json: expected 247.96 MiB of memory free to read it"),
                    HasSubstr(", got ")));
}

}  // namespace
}  // namespace neuroshard
