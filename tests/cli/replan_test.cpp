// `plan --from` from end to end: planned, checked, priced, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// Six tables on two devices, some of them later used more, gone or new.
std::string task_text(bool later, int devices = 2) {
  std::string tables;
  for (int i = 0; i < 6; ++i) {
    const bool is_new = later && i == 4;
    tables += std::string(i > 0 ? ", " : "") + R"({"name": ")" + (is_new ? "new" : "t") +
              std::to_string(i) + R"(", "num_embeddings": )" + std::to_string(1000 * (i + 1)) +
              R"(, "embedding_dim": 32, "pooling_factor": )" + (later && i == 1 ? "50" : "5") + "}";
  }
  return R"({"format": "neuroshard/task/1", "batch_size": 1024, "optimizer": "sgd", "tables": [)" +
         tables + R"(], "topology": {"world_size": )" + std::to_string(devices) +
         R"(, "memory_bytes": 1073741824}})";
}

TEST(CliReplan, PlansFromAnOlderPlan) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_text(false));
  const std::string later = folder.write("later.json", task_text(true));
  const std::string old_plan = folder.file("old.json");
  const std::string path = folder.file("plan.json");
  (void)expect_success(
      Arguments{"plan", task, "--cuts", "columns", "--steps", "500", "-o", old_plan} + kModels);
  const std::string shown =
      expect_success({"plan", later, "--from", old_plan, "--max-move", "50%", "-o", path});
  EXPECT_THAT(shown, HasSubstr("that the older plan placed: "));
  const PlanDocument document = read_plan(path);
  ASSERT_TRUE(document.moves.has_value());
  EXPECT_EQ(document.moves->max_move, 0.5);
  EXPECT_EQ(*document.search.find("options")->find("cuts"), Json(Json::Array{"columns"}));
  EXPECT_EQ(*document.search.find("options")->find("steps"), Json(500));
  EXPECT_EQ(document.model, read_plan(old_plan).model);
  EXPECT_THAT(expect_success({"check", path}), HasSubstr(": valid: "));
  EXPECT_THAT(expect_success({"price", path}), HasSubstr("that the older plan placed: "));
  const std::string json = expect_success(
      {"plan", later, "--from", old_plan, "--max-move", "0.5", "--steps", "700", "--json"});
  EXPECT_THAT(json, HasSubstr("\"moved_bytes\": "));
  EXPECT_THAT(json, HasSubstr("\"steps\": 700"));
}

TEST(CliReplan, SaysTheLeastThatWouldDo) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_text(false));
  const std::string one = folder.write("one.json", task_text(false, 1));
  const std::string old_plan = folder.file("old.json");
  (void)expect_success(Arguments{"plan", task, "--steps", "500", "-o", old_plan} + kModels);
  const CommandResult result = run_cli({"plan", one, "--from", old_plan, "--max-move", "1%"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no plan found that moves at most 1% of the "));
  EXPECT_THAT(result.err, HasSubstr("the least found moves "));
}

TEST(CliReplan, Refusals) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_text(false));
  const std::string old_plan = folder.file("old.json");
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "-o", old_plan} + kModels);
  const Arguments from{"plan", task, "--from", old_plan};
  const auto refused = [&](const Arguments& more, const std::string& message) {
    expect_refusal(folder, from + more, message);
  };
  refused({"--max-move", "110%"},
          "--max-move: expected a share such as 10% or 0.1, from 0 to 1, got");
  refused({"--max-move", ""}, "--max-move: expected a value, got \"\"");
  refused({"--max-move", "some"}, "--max-move: expected a share");
  refused({"--algorithm", "random"}, "--from excludes --algorithm");
  refused({"-o", old_plan}, "old.json");
  expect_refusal(folder, Arguments{"plan", task, "--max-move", "10%"} + kModels,
                 "--max-move needs --from");
  expect_refusal(folder, {"plan", "--like", old_plan, "--from", old_plan},
                 "--like excludes --from");
  expect_refusal(folder, {"plan", task, "--from", folder.file("none.json")}, "none.json");
}

}  // namespace
}  // namespace neuroshard
