// What is watched is ended where it stands still, and only there; where it dies, a line says so.
#include "neuroshard/collect/communication/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
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

/// How a process ends that is watched, one second long, while it runs `body`; what it and its watch
/// say goes to the file.
int status_of_watched(const std::function<void(const HangWatch&)>& body, const std::string& err) {
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that the watch can be waited for
  const pid_t child = fork();
  if (child == 0) {
    (void)setpgid(0, 0);
    (void)std::freopen(err.c_str(), "w", stderr);
    {
      const HangWatch watch({"hung\x1b", "died\x1b"}, 1);
      body(watch);
    }
    _exit(7);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  while (waitpid(-1, nullptr, 0) > 0) continue;
  return status;
}

void compute_for_seconds(int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(HangWatch, EndsWhatIsStopped) {
  const TemporaryFolder folder;
  const int status =
      status_of_watched([](const auto&) { (void)raise(SIGSTOP); }, folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read_file(folder.file("err")), "hung\\x1b\n");
}

TEST(HangWatch, EndsWhatSleeps) {
  const TemporaryFolder folder;
  const int status = status_of_watched([](const auto&) { (void)pause(); }, folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(HangWatch, LeavesWhatComputes) {
  const TemporaryFolder folder;
  const int status =
      status_of_watched([](const auto&) { compute_for_seconds(4); }, folder.file("err"));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_EQ(read_file(folder.file("err")), "");
}

TEST(HangWatch, NamesWhatDies) {
  const TemporaryFolder folder;
  const int status =
      status_of_watched([](const auto&) { (void)raise(SIGKILL); }, folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read_file(folder.file("err")), "died\\x1b\n");
  (void)status_of_watched([](const auto&) { _exit(1); }, folder.file("err"));
  EXPECT_EQ(read_file(folder.file("err")), "died\\x1b\n");
}

TEST(HangWatch, SaysNothingOfAnEndThatIsExpected) {
  const TemporaryFolder folder;
  for (const bool late : {false, true}) {
    const int status = status_of_watched(
        [&](const HangWatch& watch) {
          if (late) compute_for_seconds(1);  // the watch has begun for sure
          watch.expect_end();
          _exit(5);
        },
        folder.file("err"));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    EXPECT_EQ(read_file(folder.file("err")), "");
  }
}

TEST(HangWatch, StillEndsWhatHangsWhileItsEndIsExpected) {
  const TemporaryFolder folder;
  const int status = status_of_watched(
      [](const HangWatch& watch) {
        compute_for_seconds(1);
        watch.expect_end();
        (void)pause();
      },
      folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read_file(folder.file("err")), "hung\\x1b\n");
}

TEST(HangWatch, SaysNothingWhereTheWholeGroupIsEnded) {
  const TemporaryFolder folder;
  const int status =
      status_of_watched([](const auto&) { (void)kill(0, SIGTERM); }, folder.file("err"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_EQ(read_file(folder.file("err")), "");
}

TEST(HangWatch, EndsWithTheProcessAndLeavesNone) {
  const HangWatch never({}, 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  { const HangWatch watch({}, 1); }
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
