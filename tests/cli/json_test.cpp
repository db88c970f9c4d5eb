// The answers of commands with --json: an object that names its format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/io/json/json.h"
#include "tests/cli/run_cli.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// The answer's format, and the answer.
Json answer(const Arguments& command, const std::string& format) {
  Json json = parse_json(expect_success(command + Arguments{"--json"}), "stdout");
  EXPECT_EQ(json.find("format") == nullptr ? Json() : *json.find("format"), Json(format))
      << joined(command);
  return json;
}

TEST(CliJson, Lists) {
  const Json models = answer({"model", "list"}, "neuroshard/models/1");
  EXPECT_EQ(models.find("models")->array()->empty(), false);
  const Json workloads = answer({"workload", "list"}, "neuroshard/workloads/1");
  EXPECT_EQ(workloads.find("workloads")->array()->empty(), false);
}

TEST(CliJson, Descriptions) {
  const Json model = answer({"model", "show", "cpu-xeon-2core"}, "neuroshard/model-description/1");
  EXPECT_EQ(*model.find("networks"), Json(4));
  EXPECT_NE(model.find("metrics")->find("unseen_tables.mape"), nullptr);
  const Json clusters = answer({"model", "show", "pcie4"}, "neuroshard/model-description/1");
  EXPECT_EQ(clusters.find("clusters")->array()->empty(), false);
  EXPECT_EQ(*clusters.find("is_simulated"), Json(true));
  EXPECT_EQ(*model.find("is_simulated"), Json(false));
  const Json preset = answer({"model", "show", "a100-40gb"}, "neuroshard/model-description/1");
  EXPECT_EQ(*preset.find("is_estimate"), Json(true));
  const Json workload = answer({"workload", "show", "mlperf-dlrm-dcnv2"}, "neuroshard/workload/1");
  EXPECT_EQ(workload.find("tables")->array()->size(), 26u);
  EXPECT_EQ(*workload.find("accesses"), Json("uniform (the benchmark's multi-hot generator)"));
  EXPECT_EQ(workload.find("share_of_rows")->array()->size(), 17u);
}

TEST(CliJson, PlansCheckedComparedAndMeasured) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "-o", plan} + kModels);
  EXPECT_EQ(*answer({"check", plan}, "neuroshard/check/1").find("valid"), Json(true));
  const Json comparison = answer(
      Arguments{"compare", task, "--algorithms", "greedy-dim,random", "--relative-to", "random"} +
          kModels,
      "neuroshard/comparison/1");
  EXPECT_EQ(*comparison.find("reference"), Json("random"));
  const Json evaluation = answer({"evaluate", plan, "--arena", "1MiB"}, "neuroshard/evaluation/1");
  EXPECT_EQ(*evaluation.find("part_measured_ms"), *evaluation.find("measured_ms"));
  const Json& device = evaluation.find("devices")->array()->front();
  EXPECT_EQ(*device.find("part_measured_total_ms"), *device.find("measured_total_ms"));
  for (const char* field : {"predicted_compute_ms", "measured_forward_comm_ms", "interval"}) {
    EXPECT_NE(device.find(field), nullptr) << field;
  }
}

TEST(CliJson, TrainingAndItsTest) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 60);
  const std::string model = folder.file("m.safetensors");
  const Json trained =
      answer({"train", "compute", costs, "--epochs", "1", "-o", model}, "neuroshard/training/1");
  EXPECT_EQ(*trained.find("model"), Json(model));
  const Json tested = answer({"model", "test", model, costs}, "neuroshard/model-test/1");
  EXPECT_EQ(*(*tested.find("files")->array())[0].find("metrics")->find("samples"), Json(60));
}

TEST(CliJson, ThePapersTable) {
  const CliFolder folder;
  const Json table =
      answer(Arguments{"paper-table", "--folder", folder.file("table"), "--count", "1", "--devices",
                       "2", "--max-dims", "8", "--algorithms", "greedy-dim,random"} +
                 kModels,
             "neuroshard/paper-table/1");
  EXPECT_EQ(table.find("cells")->array()->size(), 1u);
}

TEST(CliCompare, ReadsFilesOfControlsOnce) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  (void)expect_success({"collect", "compute", "--samples", "2", "--batch-size", "1024", "--tables",
                        "1:2", "--dims", "4", "--arena", "1MiB", "-o", costs});
  // Through a pipe, which a second reader finds empty.
  const CommandResult result =
      run_program({"bash", "-c",
                   // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one command
                   R"(exec "$0" compare "$1" --algorithms greedy-dim --measure --arena 4MiB )"
                   R"(--model a100-40gb --model analytic-a100-nvswitch --controls <(cat "$2"))",
                   NEUROSHARD_EXECUTABLE, folder.write("task.json", kTask), costs});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("less drift"));
}

}  // namespace
}  // namespace neuroshard
