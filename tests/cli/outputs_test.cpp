// Output files: whole or not at all; answers of "no" with their numbers; and failures of the
// machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/refine/calibration.h"
#include "neuroshard/train/compute/compute_dataset.h"
#include "tests/cli/run_cli.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/cost/narrow_model.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// Commands that write a file, without their "-o PATH".
std::vector<Arguments> writing_commands(const CliFolder& folder) {
  const std::string task = folder.write("task.json", kTask);
  testing_costs::write_costs(folder.file("costs.jsonl"), testing_costs::make_header(), 40);
  return {Arguments{"plan", task} + kModels, Arguments{"compare", task} + kModels,
          Arguments{"train", "compute", folder.file("costs.jsonl"), "--epochs", "1"},
          Arguments{"collect", "compute", "--samples", "1", "--batch-size", "16", "--tables", "1",
                    "--dims", "4", "--memory", "64MiB", "--arena", "1MiB"}};
}

TEST(CliOutputs, ThatCannotBeWritten) {
  const CliFolder folder;
  const std::vector<Arguments> commands = writing_commands(folder);
  folder.write("file", "x");
  std::filesystem::create_directory(folder.file("folder"));
  for (const Arguments& command : commands) {
    const auto to = [&](const std::string& path) { return command + Arguments{"-o", path}; };
    expect_refusal(folder, to(folder.file("none/out")),
                   "none/out: expected a writable file, got No such file or directory");
    expect_refusal(folder, to(folder.file("file/out")),
                   "file/out: expected a writable file, got Not a directory");
    expect_refusal(folder, to(folder.file("folder")), "/folder: expected a ");
    expect_refusal(folder, to("/dev/full"), "/dev/full: expected room to write ");
  }
}

TEST(CliOutputs, TasksThatCannotBeWritten) {
  const CliFolder folder;
  folder.write("file", "x");
  const Arguments tasks{"workload", "tasks", "dlrm-2021", "--count", "2", "-o"};
  expect_refusal(folder, tasks + Arguments{folder.file("file")}, "/file");
  expect_refusal(folder, tasks + Arguments{folder.file("file/below")}, "/file/below");
}

TEST(CliOutputs, AFullStdoutIsNoticed) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "-o", plan} + kModels);
  for (const Arguments& command :
       {Arguments{"workload", "list"}, Arguments{"model", "list"}, Arguments{"check", plan},
        Arguments{"plan", task, "--json"} + kModels, Arguments{"compare", task} + kModels,
        Arguments{"--help"}, Arguments{"--version"}}) {
    SCOPED_TRACE(joined(command));
    const CommandResult result = run_cli(command, "/dev/full");
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  }
}

TEST(CliOutputs, ATaskThatCannotFitIsAnAnswerInNumbers) {
  const CliFolder folder;
  const std::string task = folder.write(
      "task.json",
      replaced(std::string(kTask), "\"memory_bytes\": 1048576", "\"memory_bytes\": 100000"));
  const std::string plan = folder.write("plan.json", "an older plan");
  expect_refusal(folder, Arguments{"plan", task, "-o", plan} + kModels,
                 "no plan fits into memory: the tables need ", 1);
  const std::string err = run_cli(Arguments{"plan", task} + kModels).err;
  // 1,000 x 64, 2,000 x 32 and 500 x 10 fp32.
  EXPECT_THAT(err, HasSubstr("need 519.53 KiB, 2 devices have 195.31 KiB, 324.22 KiB too little"));
  EXPECT_THAT(err, HasSubstr("would do"));
  expect_refusal(folder, Arguments{"plan", task, "--algorithm", "greedy-size"} + kModels,
                 "greedy-size: no device has room for the whole table", 1);
  // A comparison records the refusals.
  EXPECT_THAT(expect_success(Arguments{"compare", task, "--json"} + kModels),
              HasSubstr("no plan fits into memory"));
}

TEST(CliOutputs, ARefusalAfterAWarningIsStillOneLine) {
  const CliFolder folder;
  ComputeModelInfo info = testing_networks::wide_info("narrow");  // of another processor
  info.range.max_batch_size = 512;
  const std::string model = folder.file("narrow.safetensors");
  write_compute_model(
      NeuralComputeModel(testing_networks::random_network(ComputeArchitecture::bounded_loads, 1),
                         info),
      model);
  const Arguments plan{"plan", folder.write("task.json", kTask), "--model", model};
  expect_refusal(folder, plan + Arguments{"-o", folder.file("none/plan.json")}, "none/plan.json");
  const std::string plan_file = folder.file("plan.json");
  EXPECT_THAT(run_cli(plan + Arguments{"-o", plan_file}).err, HasSubstr("warning: narrow: batch"));
  const Arguments evaluate{"evaluate", plan_file, "--model", model, "--arena"};
  expect_refusal(folder, evaluate + Arguments{"900TiB"}, "memory: expected 900.00 TiB free", 3);
  EXPECT_THAT(run_cli(evaluate + Arguments{"1MiB"}).err,
              HasSubstr("warning: narrow: measured on processor \"test\", here it is "));
}

/// The lines of a text that begin with "neuroshard: warning: narrow: ".
int warnings_in(const std::string& err) {
  const std::string line = "neuroshard: warning: narrow: ";
  int count = 0;
  for (std::size_t at = err.find(line); at != std::string::npos; at = err.find(line, at + 1)) {
    ++count;
  }
  return count;
}

TEST(CliOutputs, WhateverPricesSaysOnceWhatTheModelWasNotTrainedOn) {
  const CliFolder folder;
  ComputeModelInfo info = testing_networks::wide_info("narrow");
  info.range.max_batch_size = 512;
  info.range.max_embeddings = kMaxEmbeddings;
  info.range.max_pooling_factor = kMaxPoolingFactor;
  info.range.max_pieces = 1000;
  const std::string model = folder.file("narrow.safetensors");
  write_compute_model(
      NeuralComputeModel(testing_networks::random_network(ComputeArchitecture::bounded_loads, 1),
                         info),
      model);
  const std::string task = folder.write("task.json", kTask);
  const std::string again = folder.write("again.json", kTask);
  const std::string plan = folder.file("plan.json");
  const Arguments by{"--model", model, "--model", "analytic-a100-nvswitch"};
  const std::string reason = "narrow: batch_size: trained on 1 to 512, got 1024";
  const auto expect_said_once = [&](const Arguments& arguments, const std::string& line) {
    const CommandResult result = run_cli(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("neuroshard: warning: " + line + "\n"));
    EXPECT_EQ(warnings_in(result.err), 1) << result.err;
  };
  expect_said_once(Arguments{"plan", task, "-o", plan} + by, reason);
  EXPECT_THAT(read_plan(plan).warnings, testing::ElementsAre(reason));
  expect_said_once(Arguments{"price", plan} + by, reason);
  expect_said_once(Arguments{"compare", task, "--algorithms", "random"} + by, reason);
  const std::string results = folder.file("results.json");
  expect_said_once(Arguments{"compare", task, again, "--algorithms", "random", "-o", results} + by,
                   reason + ": 2 of 2 tasks, the first of them " + task);
  EXPECT_EQ(parse_json(read_file(results), results).find("warnings")->array()->size(), 1u);
  const std::string table = folder.file("table.json");
  expect_said_once(Arguments{"paper-table",
                             "--folder",
                             folder.file("cells"),
                             "--count",
                             "1",
                             "--devices",
                             "2",
                             "--max-dims",
                             "4",
                             "8",
                             "--algorithms",
                             "random",
                             "--memory",
                             "4GiB",
                             "--batch-size",
                             "1024",
                             "-o",
                             table,
                             "--model",
                             model,
                             "--model",
                             "analytic-pcie4"},
                   "narrow: batch_size: trained on 1 to 512, got 1024: 2 of 2 tasks, the first of "
                   "them 2x4-000");
  EXPECT_EQ(parse_json(read_file(table), table).find("warnings")->array()->size(), 1u);
  const std::string evaluated = run_cli({"evaluate", plan, "--arena", "1MiB"}).err;
  EXPECT_THAT(evaluated, HasSubstr("neuroshard: warning: " + reason + "\n"));
}

TEST(CliOutputs, WhateverMeasuresSaysThatTheModelIsOfAnotherMachine) {
  const CliFolder folder;
  const std::string model = folder.file("narrow.safetensors");
  testing_networks::write_narrow_model(model, 1000);
  const Arguments measured{"--algorithms", "random", "--measure", "--arena",       "1MiB",
                           "--model",      model,    "--model",   "analytic-pcie4"};
  const std::string line = "warning: narrow: measured on processor \"test\", here it is ";
  const Arguments compare{"compare", folder.write("task.json", kTask)};
  const Arguments table{"paper-table", "--folder", folder.file("cells"), "--count", "1",
                        "--devices",   "2",        "--max-dims",         "4",       "--batch-size",
                        "64"};
  for (const Arguments& command : {compare, table}) {
    const CommandResult result = run_cli(command + measured);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr(line));
  }
}

TEST(CliOutputs, AnInvalidPlanIsAnAnswer) {
  const CliFolder folder;
  PlanDocument document;
  document.task = [&] {
    const std::string plan = folder.file("plan.json");
    (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
    return read_plan(plan).task;
  }();
  document.plan.shards = {{0, 0, 32, 0}, {1, 0, 32, 1}, {2, 0, 10, 7}};
  const std::string path = folder.file("invalid.json");
  write_plan(document, path);
  const CommandResult checked = run_cli({"check", path});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_EQ(checked.out, path + ": shards[2].device: expected 0 to 1, got 7\n");
  EXPECT_EQ(checked.err, "neuroshard: " + path + ": not valid: 1 violation\n");
  expect_refusal(folder, {"evaluate", path}, path + ": not valid: shards[2].device", 1);

  document.plan.shards = {{0, 0, 32, 0}, {1, 0, 32, 1}, {1, 0, 32, 0}, {2, 0, 10, 1}};
  write_plan(document, path);
  const CommandResult gaps = run_cli({"check", path});
  EXPECT_EQ(gaps.exit_code, 1);
  EXPECT_EQ(gaps.out, path + ": table \"user\": columns 32 to 63 are on no device\n" + path +
                          ": table \"item\": columns 0 to 31 are placed more than once\n");
  EXPECT_THAT(gaps.err, HasSubstr("2 violations"));
}

TEST(CliOutputs, AMachineThatCannotIsExitCode3) {
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
  expect_refusal(folder, {"evaluate", plan, "--arena", "900TiB"},
                 "memory: expected 900.00 TiB free, got ", 3);
  // A run that cannot start must not begin a file, as a run with another arena could not continue
  // it.
  expect_refusal(folder,
                 {"collect", "compute", "--samples", "1", "--arena", "900TiB", "-o",
                  folder.file("costs.jsonl")},
                 "memory: expected 900.00 TiB free, got ", 3);
}

TEST(CliOutputs, ReplaceFilesWhole) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.write("plan.json", std::string(100'000, 'x'));
  (void)expect_success(Arguments{"plan", task, "-o", plan} + kModels);
  EXPECT_NO_THROW((void)read_plan(plan));
  EXPECT_EQ(folder.state().size(), 2u);
}

/// A model that is quick to calibrate; the path.
std::string write_tiny_model(const std::string& path,
                             const ComputeModelInfo& info = testing_networks::wide_info("tiny")) {
  const ComputeNetwork network =
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 1, {{4, 3}, 2});
  write_compute_model(NeuralComputeModel(network, info), path);
  return path;
}

TEST(CliOutputs, AModelThatAnotherProcessMadeMeanwhileIsNotReplaced) {
  const CliFolder folder;
  const std::string tiny = write_tiny_model(folder.file("tiny.safetensors"));
  const std::string model = folder.file("mine.safetensors");
  // It measures after it has looked at its output, and trains after it has measured.
  const std::string line =
      R"("$0" calibrate --model "$1" --samples 30 --time-limit 60s --arena 64MiB --folder "$2" )"
      R"(-o "$3" & until ls "$2"/*.jsonl; do sleep 0.01; done; printf %s "$4" > "$3"; wait $!)";
  const std::string other = R"({"format": "neuroshard/compute-costs/1", "hardware": "another"})";
  const CommandResult result = run_program(
      {"bash", "-c", line, NEUROSHARD_EXECUTABLE, tiny, folder.file("kept"), model, other});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("mine.safetensors: expected a new file, or --force, got "));
  EXPECT_THAT(result.err, HasSubstr("warning: tiny: measured on operator \"test\", here it is "
                                    "\"neuroshard-cpu\""));
  EXPECT_EQ(read_file(model), other);
}

TEST(CliOutputs, CostsOfAFinishedCalibrationAreRemovedWhenTheNextOneMeasures) {
  const CliFolder folder;
  const std::string tiny = write_tiny_model(folder.file("tiny.safetensors"));
  const std::string model = folder.file("mine.safetensors");
  CalibrationOptions calibration;
  calibration.model = read_compute_model(tiny);
  calibration.folder = model + ".costs";
  std::filesystem::create_directory(calibration.folder);
  const std::string costs = calibration_files(calibration).front();
  testing_costs::write_costs(costs, testing_costs::make_header(), 40);
  const std::string notes = folder.write("mine.safetensors.costs/notes", "of somebody");
  ComputeModelInfo info = testing_networks::wide_info("mine");
  info.data_sha256 = training_data_sha256({costs});
  (void)write_tiny_model(model, info);
  const std::string finished = read_file(model);

  // The time suffices for no sample.
  const Arguments calibrate = Arguments{"calibrate", "--quiet", "--model", tiny} +
                              Arguments{"--time-limit", "1ms", "-o", model};
  expect_refusal(folder, calibrate, "mine.safetensors: expected a new file, or --force, got ");
  expect_refusal(folder, calibrate + Arguments{"--force", "--arena", "900TiB"},
                 "memory: expected 900.00 TiB free, got ", 3);
  const CommandResult result = run_cli(calibrate + Arguments{"--force", "--arena", "64MiB"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected at least 30 measured samples: a longer time limit"));
  EXPECT_TRUE(read_compute_costs(costs).samples.empty());
  EXPECT_EQ(read_file(notes), "of somebody");
  EXPECT_EQ(read_file(model), finished);
}

TEST(CliOutputs, PlanToStdoutAndDevices) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  (void)expect_success(Arguments{"plan", task, "-o", "/dev/null"} + kModels);
  const std::string json =
      expect_success(Arguments{"plan", task, "--json", "-o", folder.file("p")} + kModels);
  EXPECT_EQ(json, read_file(folder.file("p")));
}

TEST(CliOutputs, AReaderOfAPipeGetsTheResult) {
  const CliFolder folder;
  const CommandResult result = run_program(
      {"bash", "-c",
       // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one command
       R"(mkfifo "$2" && { cat "$2" & } && )"
       R"(timeout 30 "$0" compare "$1" --algorithms greedy-dim --model a100-40gb )"
       R"(--model analytic-a100-nvswitch -o "$2" > /dev/null; code=$?; wait; exit $code)",
       NEUROSHARD_EXECUTABLE, folder.write("task.json", kTask), folder.file("pipe")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("neuroshard/comparison/1"));
}

}  // namespace
}  // namespace neuroshard
