// A cost is finite, or an error that names the model which made it: whatever models and tasks say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/safetensors.h"
#include "tests/cli/run_cli.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/train/synthetic_costs.h"

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
       {Arguments{"plan", task, "--time-limit", "1min"}, Arguments{"price", plan},
        Arguments{"plan", task, "--cuts", "columns,rows,replicas", "--steps", "100"},
        Arguments{"compare", task, "--steps", "100"},
        Arguments{"evaluate", plan, "--arena", "1MiB"}}) {
    const CommandResult result = run_cli(command + by);
    SCOPED_TRACE(joined(command));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("mine: cost of "),
                      HasSubstr(": expected 0 ms, or between 1e-30 and 1e30 ms, got ")));
    EXPECT_EQ(result.out, "");
  }
}

/// The paper's architecture, with weights so large that single pieces still have a cost or have
/// none.
std::string published_model(const CliFolder& folder, const std::string& layers, float weight) {
  std::string path = folder.file("mine.safetensors");
  const ComputeNetwork network =
      testing_networks::random_network(ComputeArchitecture::published, 1);
  write_compute_model(NeuralComputeModel(network, testing_networks::wide_info("mine")), path);
  TensorFile model = read_tensors(path);
  for (auto& [name, tensor] : model.tensors) {
    if (name.find(layers) == std::string::npos || !name.ends_with(".weight")) continue;
    for (float& value : tensor.values) value = value < 0.0F ? -weight : weight;
  }
  write_tensors(model, path);
  return path;
}

TEST(CliCosts, AModelOfThePapersArchitectureWhoseOutputsOverflowIsNamed) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", task_with("3.0"));
  int finite = 0;
  int refused = 0;
  for (const char* layers : {"encoder", "head", ""}) {
    for (const float weight : {1e18F, 1e30F, 3e38F}) {
      const Arguments by{"--model", published_model(folder, layers, weight), "--model",
                         "analytic-pcie4"};
      for (const Arguments& command : {Arguments{"plan", task, "--steps", "1000"},
                                       Arguments{"plan", task, "--cuts", "columns"},
                                       Arguments{"plan", task, "--algorithm", "beam-search"},
                                       Arguments{"compare", task, "--steps", "100"}}) {
        const CommandResult result = run_cli(command + by);
        SCOPED_TRACE(fmt::format("{} {}: {}", layers, weight, joined(command)));
        if (result.exit_code == 0) {  // large, and finite
          ++finite;
          EXPECT_THAT(result.out, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
          continue;
        }
        ++refused;
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_THAT(result.err,
                    AllOf(HasSubstr("cost of "),
                          HasSubstr(": expected 0 ms, or between 1e-30 and 1e30 ms, got ")));
        EXPECT_EQ(result.out, "");
      }
    }
  }
  // Or these weights would say nothing of the one or the other.
  EXPECT_GE(finite, 10);
  EXPECT_GE(refused, 10);
}

TEST(CliCosts, MeasuredTimesOfThousandsOfYearsAreRefused) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 3);
  std::string text = read_file(costs);
  const std::size_t at = text.rfind("\"forward_ms\":") + 13;
  text.replace(at, text.find(',', at) - at, "1e308");
  write_file(costs, text);
  expect_refusal(folder, {"model", "test", "cpu-xeon-2core", costs},
                 "forward_ms: expected milliseconds between 1e-30 and 1e30, got 1e+308");
}

TEST(CliCosts, ABatchThatMemoryHasNoRoomForIsRefusedWithTheFigure) {
  const CliFolder folder;
  std::string text =
      replaced(std::string(kTask), "\"batch_size\": 1024", "\"batch_size\": 1073741824");
  text = replaced(text, "\"pooling_factor\": 3.0", "\"pooling_factor\": 3000.0");
  text = replaced(text,
                  ", \"reuse_histogram\": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "");
  const std::string task = folder.write("task.json", text);
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "--cuts", "columns", "-o", plan} +
                       kModels);
  expect_refusal(folder, {"evaluate", plan, "--arena", "1MiB", "-q"},
                 "TiB free for a batch of 1073741824 samples, got ", 3);
}

TEST(CliCosts, WhatIsMeasuredOfTablesWithSeveralFeaturesIsSaid) {
  const CliFolder folder;
  const std::string one = folder.write("one.json", kTask);
  const std::string several =
      folder.write("several.json", replaced(std::string(kTask), "\"pooling_factor\": 1.5",
                                            "\"pooling_factor\": 1.5, \"num_features\": 3"));
  const std::string said =
      "tables with several features: measured with one pooled output, predicted with one for each "
      "feature (\"item\")";
  const Arguments measured{"--arena", "1MiB"};
  for (const auto& [task, is_said] : {std::pair{one, false}, std::pair{several, true}}) {
    const std::string plan = folder.file("plan.json");
    (void)expect_success(Arguments{"plan", task, "--steps", "100", "--force", "-o", plan} +
                         kModels);
    const CommandResult alone = run_cli(Arguments{"evaluate", plan} + measured + kModels);
    const CommandResult compared =
        run_cli(Arguments{"compare", task, "--steps", "100", "--measure"} + measured + kModels);
    for (const CommandResult& result : {alone, compared}) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err.find(said) != std::string::npos, is_said) << result.err;
    }
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
