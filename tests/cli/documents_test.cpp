// The documents are up to date: the command line's page equals the output of --help, and everything
// that they refer to exists, files, commands and options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/run_cli.h"

namespace neuroshard::testing_cli {
namespace {

const std::string kScripts = NEUROSHARD_SOURCE_DIR "/scripts/";

TEST(Documents, CommandLinePageIsWhatHelpPrints) {
  const CommandResult result = run_program(
      {"python3", kScripts + "command_line_reference.py", NEUROSHARD_EXECUTABLE, "--check"});
  EXPECT_EQ(result.exit_code, 0) << result.err << "write docs/command_line.md again: "
                                 << "scripts/command_line_reference.py " << NEUROSHARD_EXECUTABLE;
}

TEST(Documents, AnOutdatedCommandLinePageIsFound) {
  const CliFolder folder;
  const std::string page = folder.file("page.md");
  const std::string script = kScripts + "command_line_reference.py";
  ASSERT_EQ(run_program({"python3", script, NEUROSHARD_EXECUTABLE, "-o", page}).exit_code, 0);
  std::string text = read_file(page);
  EXPECT_THAT(text, testing::HasSubstr("| `--version` |"));
  EXPECT_THAT(text, testing::HasSubstr("\n### collect compute\n"));
  EXPECT_THAT(text, testing::HasSubstr("\n| `--max-dim INT=128` | "));
  text.insert(text.find("`--version`"), "`--verbose` ");
  write_file(page, text);
  const CommandResult result =
      run_program({"python3", script, NEUROSHARD_EXECUTABLE, "--check", "-o", page});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::HasSubstr("--verbose"));
  EXPECT_THAT(result.err, testing::HasSubstr("scripts/command_line_reference.py"));
}

TEST(Documents, ANameThatReachesTheColumnOfDescriptionsStaysWhole) {
  // Its last space lies where the description of a shorter name would begin.
  const CliFolder folder;
  const std::string page = folder.file("page.md");
  const std::string script = kScripts + "command_line_reference.py";
  ASSERT_EQ(run_program({"python3", script, NEUROSHARD_EXECUTABLE, "-o", page}).exit_code, 0);
  EXPECT_THAT(read_file(page), testing::HasSubstr("| `--arena TEXT=4GiB Excludes: --platform` | "
                                                  "Memory to take for the tables; under mpirun, "));
}

TEST(Documents, WhatTheyReferToExists) {
  const CommandResult result = run_program({"python3", kScripts + "check_documents.py"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Documents, TheirCommandsExist) {
  const CommandResult result = run_program({"python3", kScripts + "check_commands.py"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Documents, CommandsThatDoNotExistAreFound) {
  const CliFolder folder;
  const std::string page = folder.write(
      "page.md",
      "Run `neuroshard plan task.json --no-such` or `make plan`.\n"
      "```\n"
      "$ neuroshard workload tasks dlrm-2021 --count 2 -o tasks | head    # --not-looked-at\n"
      "neuroshard divide task.json && make nothing\n"
      "build/release/tests/test_cost --gtest_filter='NoSuchSuite.*'\n"
      "mpirun -np 2 neuroshard evaluate plan.json \\\n"
      "  --everything\n"
      "scripts/no_such.sh\n"
      "```\n");
  const CommandResult result = run_program({"python3", kScripts + "check_commands.py", page});
  EXPECT_EQ(result.exit_code, 1);
  std::vector<std::string> reasons;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    reasons.push_back(line.substr(line.rfind(": ") + 2));
  }
  EXPECT_THAT(reasons,
              testing::ElementsAre("expected an option of plan, got --no-such",
                                   "expected a subcommand, got divide",
                                   "expected a target of the Makefile, got nothing",
                                   "expected a suite of tests, got NoSuchSuite",
                                   "expected an option of evaluate, got --everything",
                                   "expected a file of the source tree, got scripts/no_such.sh"));
}

TEST(Documents, RoomsIncludeTheRoomsAboveThemInTheTour) {
  const CommandResult result = run_program({"python3", kScripts + "check_rooms.py"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(Documents, NoSourceReadsAClockThatCanBeSet) {
  const CommandResult result = run_program({"python3", kScripts + "check_clocks.py"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const CliFolder folder;
  const std::string source =
      folder.write("a.cpp", "\nauto t = std::chrono::system_clock::now();\n");
  EXPECT_EQ(run_program({"python3", kScripts + "check_clocks.py", source}).out,
            source + ": line 2: expected a steady clock, got system_clock\n");
}

TEST(Documents, SourcesCompiledAsOneShareNoUnnamedName) {
  const std::string script = kScripts + "check_unnamed_names.py";
  const CommandResult result = run_program({"python3", script});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const CliFolder folder;
  const std::string first = folder.write(
      "a.cpp", "namespace {\nint size(int n) { return n; }\nusing std::min;\n}  // namespace\n");
  const std::string second = folder.write(
      "b.cpp", "namespace {\nlong size(long n) { return n; }\nusing std::min;\n}  // namespace\n");
  EXPECT_EQ(run_program({"python3", script, first, second}).out,
            second + ": expected a name that " + first + " does not use, got size\n");
}

TEST(Documents, BrokenReferencesAreFound) {
  const CliFolder folder;
  const std::string page =
      folder.write("page.md",
                   "# One\n[a](missing.md) [b](#one) [c](#two) [d](page.md#one)\n"
                   "```\n[e](in_code.md)\n```\n"
                   "`cost/simulator.h` `cost/no_such_file.h`\n");
  const CommandResult result = run_program({"python3", kScripts + "check_documents.py", page});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, page + ": line 2: missing.md: expected an existing file\n" + page +
                            ": line 2: #two: expected a heading of " + page + "\n" + page +
                            ": line 6: cost/no_such_file.h: expected a file of the source tree\n");
}

}  // namespace
}  // namespace neuroshard::testing_cli
