// What is watched is ended where it stands still, and only there.
#include "neuroshard/collect/communication/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "neuroshard/core/error.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

/// How a process ends that is watched, one second long, while it runs `body`; what it says goes to
/// the file.
int status_of_watched(const std::function<void()>& body, const std::string& err) {
  const pid_t child = fork();
  if (child == 0) {
    (void)std::freopen(err.c_str(), "w", stderr);
    {
      const HangWatch watch("hung\x1b", 1);
      body();
    }
    _exit(7);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

void compute_for_seconds(int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(HangWatch, EndsWhatIsStopped) {
  const TemporaryFolder folder;
  const int status = status_of_watched([] { (void)raise(SIGSTOP); }, folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read_file(folder.file("err")), "hung\\x1b\n");
}

TEST(HangWatch, EndsWhatSleeps) {
  const TemporaryFolder folder;
  const int status = status_of_watched([] { (void)pause(); }, folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(HangWatch, LeavesWhatComputes) {
  const TemporaryFolder folder;
  const int status = status_of_watched([] { compute_for_seconds(4); }, folder.file("err"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_EQ(read_file(folder.file("err")), "");
}

TEST(HangWatch, EndsWithTheProcessAndLeavesNone) {
  const HangWatch never("", 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  { const HangWatch watch("", 1); }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(HangWatch, LimitIsATimeOfTheEnvironment) {
  EXPECT_EQ(hang_limit_seconds(), 15);
  setenv("NEUROSHARD_HANG_LIMIT", "2min", 1);
  EXPECT_EQ(hang_limit_seconds(), 120);
  setenv("NEUROSHARD_HANG_LIMIT", "1ms", 1);
  EXPECT_EQ(hang_limit_seconds(), 1);
  setenv("NEUROSHARD_HANG_LIMIT", "-1s", 1);
  EXPECT_THROW((void)hang_limit_seconds(), InputError);
  unsetenv("NEUROSHARD_HANG_LIMIT");
}

}  // namespace
}  // namespace neuroshard
