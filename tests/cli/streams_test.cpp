// stdout, stderr and stdin as they may be: closed, full, a terminal of any kind, a pipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_cli.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Runs a line of bash, in which "$0" is the executable and "$1", "$2", ... are the arguments.
CommandResult run_in_bash(const std::string& line, const Arguments& arguments) {
  return run_program(Arguments{"bash", "-c", line, NEUROSHARD_EXECUTABLE} + arguments);
}

const std::string kPlan =
    R"("$0" plan "$1" --steps 100 --model a100-40gb --model analytic-a100-nvswitch )";

TEST(CliStreams, AClosedOrFullStderrIsNoFailure) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  const std::string expected = [&] {
    EXPECT_EQ(run_in_bash(kPlan + R"(-o "$2")", {task, plan}).exit_code, 0);
    return read_file(plan);
  }();
  // The default model warns.
  const std::string warned = R"("$0" plan "$1" --steps 100 -o "$2" )";
  for (const char* stream : {"2>&-", "2>/dev/full", "<&- 2>&-"}) {
    const CommandResult result = run_in_bash(warned + stream, {task, plan});
    EXPECT_EQ(result.exit_code, 0) << stream;
    // Nothing else has come into the file.
    EXPECT_NO_THROW((void)read_plan(plan)) << stream;
    EXPECT_EQ(run_in_bash(R"("$0" check "$1/none" )" + std::string(stream), {plan}).exit_code, 2);
  }
  EXPECT_EQ(run_in_bash(kPlan + R"(-o "$2" 2>&-)", {task, plan}).exit_code, 0);
  EXPECT_EQ(read_plan(plan).plan.shards, parse_plan(expected, "expected").plan.shards);
}

TEST(CliStreams, AClosedStdoutIsSaidAndGetsNoFile) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const CommandResult result =
      run_in_bash(kPlan + R"(-o "$2" >&-)", {task, folder.file("plan.json")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("stdout: expected a writable file, got Bad file descriptor"));
  EXPECT_NO_THROW((void)read_plan(folder.file("plan.json")));
}

TEST(CliStreams, ALimitOnTheSizeOfFilesIsAnError) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not start under such a limit";
#endif
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  // Messages go to a pipe, which the limit does not hold for.
  const CommandResult result =
      run_in_bash("(ulimit -f 0; " + kPlan + R"(-o "$2" 2>&1 >/dev/null; echo "code $?") | cat)",
                  {task, folder.file("plan.json")});
  EXPECT_THAT(result.out, AllOf(HasSubstr("plan.json: expected room to write "),
                                HasSubstr("File too large\ncode 2\n")));
  EXPECT_EQ(folder.state().size(), 1u);
}

TEST(CliStreams, ProgressLeavesTheTerminalToMessages) {
  const CliFolder folder;
  const auto collect = [&](const std::string& name) {
    return Arguments{"collect",      "compute", "--samples", "3",
                     "--batch-size", "16",      "--tables",  "1",
                     "--dims",       "4",       "--memory",  "64MiB",
                     "--arena",      "1MiB",    "-o",        folder.file(name)};
  };
  const std::string back = "\r\x1b[K";
  {
    const EnvironmentVariable kind("TERM", "xterm");
    const CommandResult result = run_on_terminal(collect("a.jsonl"));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out,
                AllOf(HasSubstr(back + "1 of 3 samples, "),
                      HasSubstr(back + folder.file("a.jsonl") + ": 3 samples measured\r\n")));
    EXPECT_THAT(run_on_terminal(collect("b.jsonl") + Arguments{"--quiet"}).out, "");
  }
  const EnvironmentVariable kind("TERM", "dumb");
  const CommandResult result = run_on_terminal(collect("c.jsonl"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("\x1b")),
                                HasSubstr(folder.file("c.jsonl") + ": 3 samples measured\r\n")));
}

TEST(CliStreams, ProgressOfALongNameStaysInItsLine) {
  // What a terminal of 60 columns would wrap could not be taken back.
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const EnvironmentVariable kind("TERM", "xterm");
  const CommandResult result = run_on_terminal(
      Arguments{"plan", task, "--steps", "1000000000", "--time-limit", "3s"} + kModels);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("improving, round "));
  std::string rest = result.out;
  for (std::size_t at = 0; (at = rest.find("\r\x1b[K")) != std::string::npos;) {
    rest.erase(0, at + 4);
    const std::string state = rest.substr(0, rest.find_first_of("\r\n"));
    if (state.starts_with("improving")) {
      EXPECT_LT(state.size(), 60u) << state;
    }
  }
  // The report is not mixed with it.
  EXPECT_THAT(result.out, HasSubstr("\r\x1b[K3 tables on 2 devices"));
}

TEST(CliStreams, APlanMadeAgainSaysHowFarItIs) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "--steps", "3000000", "-o", plan} + kModels);
  const EnvironmentVariable kind("TERM", "xterm");
  const CommandResult again = run_on_terminal({"plan", "--like", plan});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, HasSubstr("\r\x1b[Kimproving, round "));
  EXPECT_THAT(run_on_terminal({"plan", "--like", plan, "--quiet"}).out,
              Not(HasSubstr("improving")));
}

TEST(CliStreams, DashIsStandardOutputAndInput) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  EXPECT_EQ(run_in_bash(kPlan + R"(-o "$2")", {task, plan}).exit_code, 0);
  const CommandResult piped = run_in_bash(
      R"("$0" plan - --steps 100 --model a100-40gb --model analytic-a100-nvswitch -o - < "$1")",
      {task});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(parse_plan(piped.out, "piped").plan.shards, read_plan(plan).plan.shards);
  for (
      const char* line :
      {R"("$0" workload export criteo-kaggle -o - | "$0" plan - --steps 100 -o - | "$0" check -)",
       R"(cat "$2" | "$0" price - -o - | "$0" check -)",
       R"(cat "$2" | "$0" explain - --table user)",
       R"(cat "$1" | "$0" compare - --algorithms greedy-dim --model a100-40gb -o -)",
       R"(cat "$1" | "$0" capacity - --devices 2 --memory 1MiB --steps 100 --model a100-40gb -o -)",
       R"(cat "$2" | "$0" evaluate - --arena 1MiB -o - > "$3"
"$0" report "$2" --evaluation "$3" -o - | head -c 15)"}) {
    const CommandResult result =
        run_in_bash(std::string("set -o pipefail; ") + line, {task, plan, folder.file("e.json")});
    // head ends before the page does.
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 128 + 13) << line << result.err;
    EXPECT_NE(result.out, "") << line;
    EXPECT_THAT(result.err, Not(HasSubstr("expected"))) << line;
  }
  // No file of that name was made, here or there.
  EXPECT_FALSE(std::filesystem::exists("-"));
  const CommandResult broken = run_in_bash(R"(echo '{}' | "$0" check -)", {});
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("neuroshard: /dev/stdin: format: expected "));
}

TEST(CliStreams, MeasuredCostsComeThroughPipes) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 40);
  for (const char* line :
       {R"("$0" train compute "$1" --epochs 1 -o "$2")", R"(cat "$1" | "$0" model test "$2" -)",
        R"(cat "$1" | "$0" collect merge - -o "$3")", R"(cmp "$1" "$3")"}) {
    const CommandResult result =
        run_in_bash(line, {costs, folder.file("model.safetensors"), folder.file("merged.jsonl")});
    EXPECT_EQ(result.exit_code, 0) << line << result.err;
  }
}

TEST(CliStreams, CostsToTrainOnAreReadTwiceAndComeThroughNoPipe) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 40);
  const std::string model = folder.file("model.safetensors");
  for (const char* line : {R"("$0" train compute <(cat "$1") --epochs 1 -o "$2")",
                           R"("$0" train compute <(cat "$1") <(cat "$1") --epochs 1 -o "$2")"}) {
    const CommandResult result = run_in_bash(line, {costs, model});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("expected a file that can be read twice"));
    EXPECT_FALSE(std::filesystem::exists(model));
  }
}

TEST(CliStreams, WhatIsAFileInAnyCaseIsNotStandardOutput) {
  const CliFolder folder;
  const std::string costs = folder.write("costs.jsonl", "\n");
  for (const Arguments& command :
       {Arguments{"train", "compute", costs}, Arguments{"train", "communication", costs},
        Arguments{"collect", "compute"}, Arguments{"collect", "merge", costs},
        Arguments{"collect", "communication", "--backend", "simgrid", "--devices", "2"},
        Arguments{"calibrate", "--model", "cpu-xeon-2core"},
        Arguments{"refine-model", costs, "--folder", folder.file("f")},
        Arguments{"workload", "tasks", "dlrm-2021"}}) {
    expect_refusal(folder, command + Arguments{"-o", "-"}, "got - (standard output)");
  }
}

}  // namespace
}  // namespace neuroshard
