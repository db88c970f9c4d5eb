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
  const std::string model = folder.write("own.safetensors", "\n");
  const std::string results = folder.file("results");
  std::filesystem::create_directory(results);
  const std::string cell = folder.write("results/devices-4-max-dim-4.jsonl", "\n");
  const std::string round = folder.write("results/round-1.jsonl", "\n");
  const std::vector<Arguments> commands{
      {"train", "compute", other, own, "-o", own},
      {"train", "compute", other, "--from", model, "-o", model},
      {"train", "communication", other, "--from", model, "-o", model},
      {"train", "communication", own, "-o", own},
      {"train", "communication", other, "--held-out", own, "-o", own},
      {"plan", own, "-o", own},
      {"plan", "--like", own, "-o", own},
      {"plan", other, "--model", model, "-o", model},
      {"price", own, "-o", own},
      {"price", other, "--model", model, "-o", model},
      {"evaluate", own, "-o", own},
      {"evaluate", other, "--platform", platform, "-o", platform},
      {"evaluate", other, "--model", model, "-o", model},
      {"report", other, own, "-o", own},
      {"report", other, "--evaluation", own, "-o", own},
      {"compare", other, own, "-o", own},
      {"compare", other, "--journal", own, "-o", own},
      {"compare", own, "--journal", own},
      {"compare", other, "--model", model, "-o", model},
      {"compare", other, "--model", model, "--journal", model},
      {"compare", other, "--measure", "--controls", own, "-o", own},
      {"compare", other, "--measure", "--platform", platform, "-o", platform},
      {"compare", other, "--journal", folder.file("new"), "-o", folder.file("new")},
      {"collect", "merge", other, own, "-o", own},
      {"collect", "communication", "--backend", "simgrid", "--devices", "2", "--platform", platform,
       "-o", platform},
      {"paper-table", "--folder", results, "--model", model, "-o", model},
      {"paper-table", "--folder", results, "-o", cell},
      {"refine-model", own, "--folder", results, "-o", own},
      {"refine-model", other, "--model", model, "--folder", results, "-o", model},
      {"refine-model", other, "--folder", results, "-o", round},
      {"refine-model", round, "--folder", results, "-o", folder.file("new")}};
  for (const Arguments& command : commands) expect_refusal(folder, command, kRefusal);
}

/// A copy of a shipped model.
std::string copied_model(const CliFolder& folder, const std::string& name) {
  std::string path = folder.file(name + ".safetensors");
  std::filesystem::copy_file(fmt::format("{}/models/{}.safetensors", NEUROSHARD_SOURCE_DIR, name),
                             path);
  return path;
}

TEST(CliOwnInputs, ModelsThatAreReadWithoutTheirPathAreInputsToo) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string compute = copied_model(folder, "cpu-xeon-2core");
  const std::string communication = copied_model(folder, "all-to-all");
  const std::string plan = folder.file("plan.json");
  (void)expect_success({"plan", task, "--steps", "100", "--model", compute, "-o", plan});
  // A plan remembers its own model's path.
  expect_refusal(folder, {"price", plan, "-o", compute}, kRefusal);
  expect_refusal(folder, {"plan", "--like", plan, "-o", compute}, kRefusal);
  // One that others have priced is made again by its own.
  const std::string priced = folder.file("priced.json");
  (void)expect_success({"price", plan, "--model", "analytic-cpu", "-o", priced});
  expect_refusal(folder, {"plan", "--like", priced, "--force", "-o", compute}, kRefusal);
  // Models are shipped in a folder of the user's choice.
  const EnvironmentVariable models("NEUROSHARD_MODELS", folder.file("."));
  expect_refusal(folder, {"plan", task, "-o", compute}, kRefusal);
  expect_refusal(folder, {"plan", task, "-o", communication}, kRefusal);
  expect_refusal(folder, {"compare", task, "--journal", communication}, kRefusal);
  expect_refusal(folder, {"calibrate", "--model", "cpu-xeon-2core", "-o", compute}, kRefusal);
  expect_refusal(folder, {"train", "compute", task, "--from", "cpu-xeon-2core", "-o", compute},
                 kRefusal);
  expect_refusal(folder,
                 {"train", "communication", task, "--from", "all-to-all", "-o", communication},
                 kRefusal);
  expect_refusal(folder,
                 {"refine-model", task, "--folder", folder.file("r"), "--interconnect", "pcie4",
                  "-o", communication},
                 kRefusal);
  expect_refusal(folder, {"collect", "compute", "--least-sure", "cpu-xeon-2core", "-o", compute},
                 kRefusal);
  expect_refusal(
      folder,
      {"collect", "compute", "--sets", "plans", "--planned-by", "cpu-xeon-2core", "-o", compute},
      kRefusal);
  expect_refusal(folder, {"model", "test", "cpu-xeon-2core", task, "--samples", compute}, kRefusal);
}

TEST(CliOwnInputs, AFileThatIsNoneOfTheCommandsIsNotAppendedTo) {
  const CliFolder folder;
  const std::string notes = folder.write("notes", "what somebody wrote\nwithout a last newline");
  const Arguments collect{"collect", "compute", "--samples", "1", "--arena", "1MiB", "-o", notes};
  expect_refusal(folder, collect, "notes");
  expect_refusal(folder, {"compare", folder.write("task.json", kTask), "--journal", notes},
                 "notes");
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

TEST(CliOwnInputs, ALinkToNoFileYetStaysALink) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string link = folder.file("link");
  std::filesystem::create_symlink("plan.json", link);
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "-o", link} + kModels);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  (void)expect_success({"check", folder.file("plan.json")});
  // A new journal by two names, neither of them there.
  std::filesystem::create_symlink("journal", folder.file("other"));
  expect_refusal(folder,
                 {"compare", task, "--journal", folder.file("journal"), "-o", folder.file("other")},
                 kRefusal);
  std::filesystem::create_symlink("loop", folder.file("loop"));
  const CommandResult looped =
      run_cli(Arguments{"plan", task, "-o", folder.file("loop")} + kModels);
  EXPECT_EQ(looped.exit_code, 2);
  expect_one_line(looped.err);
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
