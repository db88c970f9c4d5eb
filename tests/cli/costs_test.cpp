// A cost is finite, or an error that names the model which made it: whatever models and tasks say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/io/safetensors.h"
#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Eight devices, four to a network card, whose schedule waits for one another.
std::string task_with(const std::string& pooling_factor) {
  std::string text = replaced(std::string(kTask), "\"world_size\": 2, \"local_world_size\": 2",
                              "\"world_size\": 8, \"local_world_size\": 4");
  return replaced(text, "\"pooling_factor\": 3.0", "\"pooling_factor\": " + pooling_factor);
}

/// A model of finite weights, so large that what the network computes is no number.
std::string overflowing_model(const CliFolder& folder) {
  TensorFile model = read_tensors(NEUROSHARD_SOURCE_DIR "/models/cpu-xeon-2core.safetensors");
  for (float& mean : model.tensors.at("feature_mean").values) mean = -3e38F;
  std::string path = folder.file("mine.safetensors");
  write_tensors(model, path);
  return path;
}

TEST(CliCosts, AModelWhoseOutputsOverflowIsNamed) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_with("3.0"));
  const Arguments links{"--model", "analytic-pcie4"};
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "--model", "a100-40gb", "-o", plan} + links);
  const Arguments by = Arguments{"--model", overflowing_model(folder)} + links;
  for (const Arguments& command :
       {Arguments{"plan", task, "--time-limit", "100ms"}, Arguments{"price", plan},
        Arguments{"plan", task, "--cuts", "columns,rows,replicas", "--steps", "100"},
        Arguments{"compare", task, "--steps", "100"},
        Arguments{"evaluate", plan, "--arena", "1MiB"}}) {
    const CommandResult result = run_cli(command + by);
    SCOPED_TRACE(joined(command));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, AllOf(HasSubstr("mine: cost of "),
                                  HasSubstr(": expected a finite time of at least 0 ms, got ")));
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliCosts, TablesThatAreHardlyEverLookedUpHaveACost) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_with("5e-324"));
  const std::string json = expect_success(
      Arguments{"plan", task, "--steps", "100", "--json", "--cuts", "columns,rows,replicas"} +
      kModels);
  EXPECT_THAT(json, AllOf(HasSubstr("\"cost_ms\": "), Not(HasSubstr("nan"))));
}

TEST(CliCosts, MoreBytesThanNumbersHoldAreNotAValidPlan) {
  const CliFolder folder;
  std::string tables;
  std::string shards;
  for (int t = 0; t < 16; ++t) {
    const char* comma = t == 0 ? "" : ", ";
    tables += fmt::format(
        R"({}{{"name": "t{}", "num_embeddings": 4398046511104, "embedding_dim": 65536, "pooling_factor": 1.0, "data_type": "fp32"}})",
        comma, t);
    shards += fmt::format(
        R"({}{{"table": "t{}", "column_offset": 0, "num_columns": 65536, "device": 0}})", comma, t);
  }
  const std::string plan = folder.write(
      "plan.json",
      fmt::format(R"({{"format": "neuroshard/plan/1", "task": {{"format": "neuroshard/task/1",
 "batch_size": 1, "optimizer": "sgd", "tables": [{}],
 "topology": {{"world_size": 1, "local_world_size": 1, "memory_bytes": 1}}}}, "shards": [{}]}})",
                  tables, shards));
  const CommandResult checked = run_cli({"check", plan});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, HasSubstr("device 0: expected at most 1 bytes (1 B), got "));
}

}  // namespace
}  // namespace neuroshard
