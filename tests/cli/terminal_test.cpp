// What a terminal would obey is shown instead, wherever names and paths from files are printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// Ends the line, forges another, clears the screen, rings, and begins a sequence in one character.
constexpr std::string_view kName = "u\n p.json: valid\x1b[2J\a\xC2\x9B";
constexpr std::string_view kInJson = R"(u\n p.json: valid\u001b[2J\u0007\u009b)";
constexpr std::string_view kShown = R"(u\x0a p.json: valid\x1b[2J\x07\u009b)";

/// A task whose first table has to be cut.
std::string task_of(const CliFolder& folder, std::string_view name) {
  std::string text = replaced(std::string(kTask), "\"memory_bytes\": 1048576",
                              "\"memory_bytes\": 300000, \"interconnect\": \"pcie4\"");
  text = replaced(text, "\"num_embeddings\": 1000", "\"num_embeddings\": 1200");
  return folder.write("task.json", replaced(text, "\"user\"", "\"" + std::string(name) + "\""));
}

/// Lines, and nothing else that a terminal obeys.
void expect_plain(const std::string& text) {
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '\n' || (c >= 0x20 && c != 0x7F);
  })) << text;
  EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << text;
}

TEST(CliTerminal, NamesAreShownNotObeyed) {
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  const auto planned = [&](std::string_view name) {
    return expect_success(Arguments{"plan", task_of(folder, name), "--steps", "100", "-o", plan} +
                          kModels);
  };
  const std::string plain = planned("user");
  const std::string text = planned(kInJson);
  expect_plain(text);
  EXPECT_THAT(text, HasSubstr("  " + std::string(kShown) + ": 64 columns = "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            std::count(plain.begin(), plain.end(), '\n'));

  PlanDocument document = read_plan(plan);
  EXPECT_EQ(document.task.tables[0].name, kName);
  expect_plain(expect_success({"price", plan, "--json"}));
  document.plan.shards = {{0, 0, 32, 0}, {1, 0, 32, 1}, {2, 0, 10, 1}};
  write_plan(document, plan);
  const CommandResult checked = run_cli({"check", plan});
  EXPECT_EQ(checked.out,
            plan + ": table \"" + std::string(kShown) + "\": columns 32 to 63 are on no device\n");
  const CommandResult json = run_cli({"check", plan, "--json"});
  expect_plain(json.out);
  EXPECT_THAT(json.out, HasSubstr(std::string(kInJson)));
}

TEST(CliTerminal, PathsAreShownNotObeyed) {
  const CliFolder folder;
  const std::string plan = folder.file("p\x1b[2J\xC2\x9B\n.json");
  const std::string shown = R"(p\x1b[2J\u009b\x0a.json)";
  const std::string task = folder.write("task.json", kTask);
  const std::string text =
      expect_success(Arguments{"plan", task, "--steps", "100", "-o", plan} + kModels);
  expect_plain(text);
  EXPECT_THAT(text, HasSubstr(shown));
  EXPECT_THAT(expect_success({"check", plan}), HasSubstr(shown + ": valid: "));
  expect_refusal(folder, {"check", folder.file("\x1b]0;title\a")}, R"(\x1b]0;title\x07)");
}

}  // namespace
}  // namespace neuroshard
