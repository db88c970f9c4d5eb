// Pinned tables from end to end: planned, checked, planned again, and what cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// "a" on device 2 with "b", "c" anywhere; the pins of "b" as given.
std::string task_text_with(const std::string& pins_of_b) {
  return R"({"format": "neuroshard/task/1", "batch_size": 4096, "optimizer": "sgd", "tables": [
  {"name": "a", "num_embeddings": 100000, "embedding_dim": 32, "pooling_factor": 4, "devices": [2]},
  {"name": "b", "num_embeddings": 100000, "embedding_dim": 32, "pooling_factor": 4)" +
         pins_of_b + R"(},
  {"name": "c", "num_embeddings": 100000, "embedding_dim": 32, "pooling_factor": 4}],
"topology": {"world_size": 4, "local_world_size": 1, "memory_bytes": 25600000}})";
}

TEST(Pins, PlansKeepToThemAndThePlanKeepsThem) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_text_with(R"(, "same_device_as": "a")"));
  const std::string path = folder.file("plan.json");
  (void)expect_success(
      Arguments{"plan", task, "--cuts", "columns,rows,replicas", "--steps", "1000", "-o", path} +
      kAnalytic);
  const PlanDocument document = read_plan(path);
  EXPECT_EQ(document.task.tables[0].devices, std::vector<int>{2});
  EXPECT_EQ(document.task.tables[1].same_device_as, "a");
  EXPECT_EQ(document.plan.shards[0], (Shard{0, 0, 32, 2}));
  EXPECT_EQ(document.plan.shards[1], (Shard{1, 0, 32, 2}));
  EXPECT_THAT(expect_success({"check", path}), HasSubstr(": valid: "));
  const std::string again = folder.file("again.json");
  (void)expect_success({"plan", "--like", path, "-o", again});
  EXPECT_EQ(read_plan(again).plan.shards, document.plan.shards);
  EXPECT_EQ(read_plan(again).predicted->cost_ms, document.predicted->cost_ms);
}

TEST(Pins, WhatIsWrongIsSaidInALine) {
  const CliFolder folder;
  const std::string unknown =
      folder.write("unknown.json", task_text_with(R"(, "same_device_as": "d")"));
  const CommandResult refused = run_cli(Arguments{"plan", unknown} + kAnalytic);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(
      refused.err,
      HasSubstr("unknown.json: tables[1].same_device_as: expected the name of another table "
                "of the task, got \"d\""));
  const std::string task = task_text_with(R"(, "same_device_as": "a")");
  const CommandResult fewer =
      run_cli(Arguments{"plan", folder.write("task.json", task), "--devices", "2"} + kAnalytic);
  EXPECT_EQ(fewer.exit_code, 2);
  EXPECT_THAT(fewer.err, HasSubstr(": with --devices 2: tables[0].devices[0]: expected a device "
                                   "from 0 to 1, got 2"));

  const std::string plan = folder.write(
      "plan.json", R"({"format": "neuroshard/plan/1", "task": )" + task +
                       R"(, "shards": [{"table": "a", "column_offset": 0, "num_columns": 32,
"device": 1}, {"table": "b", "column_offset": 0, "num_columns": 32, "device": 2},
{"table": "c", "column_offset": 0, "num_columns": 32, "device": 2}]})");
  const CommandResult checked = run_cli({"check", plan});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out + checked.err,
              HasSubstr("shards[0].device: expected \"a\" on device 2, got 1"));

  const CommandResult tight =
      run_cli(Arguments{"plan", folder.file("task.json"), "--memory", "20MiB"} + kAnalytic);
  EXPECT_EQ(tight.exit_code, 1);
  EXPECT_THAT(tight.err, HasSubstr("tables \"a\" and \"b\" need 24.41 MiB, and device 2, on which "
                                   "alone they may lie, has 20.00 MiB; 4 devices of "));
}

}  // namespace
}  // namespace neuroshard
