// An output that is an input is refused before any work, by whatever path it is named.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;

constexpr const char* kRefusal = ": expected another file than those that are read, got ";

TEST(CliOwnInputs, NoCommandWritesOverWhatItReads) {
  const CliFolder folder;
  const std::string own = folder.write("own", "what was measured for a week\n");
  const std::string other = folder.write("other", "\n");
  const std::string platform = folder.write("own.xml", "<platform/>\n");
  const std::string results = folder.file("results");
  std::filesystem::create_directory(results);
  const std::string cell = folder.write("results/devices-4-max-dim-4.jsonl", "\n");
  const std::string round = folder.write("results/round-1.jsonl", "\n");
  const std::vector<Arguments> commands{
      {"train", "compute", other, own, "-o", own},
      {"train", "communication", own, "-o", own},
      {"train", "communication", other, "--held-out", own, "-o", own},
      {"plan", own, "-o", own},
      {"plan", "--like", own, "-o", own},
      {"plan", other, "--model", own, "-o", own},
      {"price", own, "-o", own},
      {"price", other, "--model", own, "-o", own},
      {"compare", other, own, "-o", own},
      {"compare", other, "--journal", own, "-o", own},
      {"compare", own, "--journal", own},
      {"compare", other, "--model", own, "-o", own},
      {"compare", other, "--model", own, "--journal", own},
      {"compare", other, "--measure", "--controls", own, "-o", own},
      {"compare", other, "--measure", "--platform", platform, "-o", platform},
      {"compare", other, "--journal", folder.file("new"), "-o", folder.file("new")},
      {"collect", "merge", other, own, "-o", own},
      {"collect", "communication", "--backend", "simgrid", "--devices", "2", "--platform", platform,
       "-o", platform},
      {"paper-table", "--folder", results, "--model", own, "-o", own},
      {"paper-table", "--folder", results, "-o", cell},
      {"refine-model", own, "--folder", results, "-o", own},
      {"refine-model", other, "--model", own, "--folder", results, "-o", own},
      {"refine-model", other, "--folder", results, "-o", round},
      {"refine-model", round, "--folder", results, "-o", folder.file("new")}};
  for (const Arguments& command : commands) expect_refusal(folder, command, kRefusal);
}

TEST(CliOwnInputs, ALinkIsTheFileThatItLeadsTo) {
  const CliFolder folder;
  const std::string own = folder.write("own", "a task\n");
  const std::string hard = folder.file("hard");
  const std::string symbolic = folder.file("symbolic");
  std::filesystem::create_hard_link(own, hard);
  std::filesystem::create_symlink("own", symbolic);
  for (const std::string& path : {hard, symbolic, folder.file("./own")}) {
    expect_refusal(folder, {"plan", own, "-o", path},
                   fmt::format("{}{}, which is {}", kRefusal, path, own));
    expect_refusal(folder, {"plan", path, "-o", own},
                   fmt::format("{}{}, which is {}", kRefusal, own, path));
  }
}

TEST(CliOwnInputs, AnotherFileOfTheSameContentIsAnother) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string copy = folder.write("copy.json", kTask);
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "-o", copy} + kModels);
  EXPECT_EQ(read_file(task), kTask);
  (void)expect_success({"price", copy, "-o", folder.file("priced.json")});
  (void)expect_success({"price", copy, "-o", "/dev/null"});
}

}  // namespace
}  // namespace neuroshard
