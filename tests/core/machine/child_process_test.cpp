// Work in a process of its own: what it wrote, and how it ended.
#include "neuroshard/core/machine/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>

namespace neuroshard {
namespace {

int write_all(int descriptor, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
    if (count < 0) return 1;
    written += static_cast<std::size_t>(count);
  }
  return 0;
}

TEST(ChildProcess, WhatItWroteAndItsExitCode) {
  const auto ended =
      run_in_child([](int descriptor) { return write_all(descriptor, "seven") + 7; });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->written, "seven");
  EXPECT_EQ(ended->exit_code, 7);
}

TEST(ChildProcess, MoreThanAPipeHolds) {
  const std::string text(std::size_t{1} << 20, 'x');
  const auto ended = run_in_child([&](int descriptor) { return write_all(descriptor, text); });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->written, text);
  EXPECT_EQ(ended->exit_code, 0);
}

TEST(ChildProcess, OneThatASignalEndsHasNoExitCode) {
  const auto ended = run_in_child([](int descriptor) {
    (void)write_all(descriptor, "last words");
    (void)raise(SIGKILL);
    return 0;
  });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->written, "last words");
  EXPECT_FALSE(ended->exit_code);
}

TEST(ChildProcess, WhereNobodyKnowsHowItEndedItHasNoExitCode) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto ended = run_in_child([](int) {
    (void)raise(SIGKILL);
    return 0;
  });
  (void)std::signal(SIGCHLD, before);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->exit_code);
}

TEST(ChildProcess, ThisProcessKeepsItsOwnMemory) {
  int number = 1;
  const auto ended = run_in_child([&](int) { return number = 2; });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 2);
  EXPECT_EQ(number, 1);
}

}  // namespace
}  // namespace neuroshard
