// Every subcommand in its intended use, on inputs small enough for seconds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"
#include "tests/cli/run_cli.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Cli, HelpAndVersion) {
  EXPECT_THAT(expect_success({"--version"}), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const std::string help = expect_success({"--help"});
  for (const char* command :
       {"workload", "collect", "train", "plan", "compare", "evaluate", "check", "model"}) {
    EXPECT_THAT(help, HasSubstr(command));
    EXPECT_THAT(expect_success({command, "--help"}), HasSubstr(command));
  }
}

TEST(Cli, WorkloadListAndShow) {
  EXPECT_THAT(expect_success({"workload", "list"}),
              testing::AllOf(HasSubstr("dlrm-2021"), HasSubstr("mlperf-dlrm-dcnv2")));
  const std::string shown =
      expect_success({"workload", "show", "mlperf-dlrm-dcnv2", "--batch-size", "1024", "--tables"});
  EXPECT_THAT(shown, HasSubstr("tables               26\n"));
  EXPECT_THAT(shown, HasSubstr("batch size           1024\n"));
  EXPECT_THAT(shown, HasSubstr("40000000"));
}

TEST(Cli, WorkloadTasksFollowTheirSeed) {
  const CliFolder folder;
  const std::string out = expect_success(tasks_command(folder.file("a")));
  EXPECT_EQ(out, "3 tasks written to " + folder.file("a") + "\n");
  for (const char* name : {"task-0.json", "task-1.json", "task-2.json"}) {
    const Task task = read_task(folder.file("a") + "/" + name);
    EXPECT_TRUE(task.tables.size() >= 2 && task.tables.size() <= 4);
    EXPECT_EQ(task.topology.world_size, 2);
  }
  (void)expect_success(tasks_command(folder.file("b")));
  (void)expect_success(tasks_command(folder.file("c"), "2"));
  const auto text = [&](const char* path) { return read_file(folder.file(path)); };
  EXPECT_EQ(text("a/task-1.json"), text("b/task-1.json"));
  EXPECT_NE(text("a/task-1.json"), text("c/task-1.json"));
}

TEST(Cli, PlanCheckAndEvaluate) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  const std::string report =
      expect_success(Arguments{"plan", task, "--baselines", "-o", plan} + kModels);
  EXPECT_THAT(report, StartsWith("3 tables on 2 devices, batch 1024, sgd\n"));
  EXPECT_THAT(report, HasSubstr("analytic-a100-40gb (an estimate, not measured)"));
  EXPECT_THAT(report, HasSubstr("<- slowest"));
  EXPECT_THAT(report, HasSubstr("torchrec-like"));
  EXPECT_THAT(report, HasSubstr("written to " + plan));
  const PlanDocument document = read_plan(plan);
  EXPECT_TRUE(violations(document.task, document.plan).empty());
  ASSERT_TRUE(document.predicted.has_value());

  EXPECT_THAT(expect_success({"check", plan}), StartsWith(plan + ": valid: "));
  const std::string evaluated = expect_success({"evaluate", plan, "--arena", "4MiB"});
  EXPECT_THAT(evaluated, HasSubstr("plan cost: predicted "));
  const std::string json =
      expect_success({"evaluate", plan, "--arena", "4MiB", "--json", "--threads", "1"});
  const Json result = parse_json(json, "stdout");
  EXPECT_EQ(*result.find("predicted_ms"), Json(document.predicted->cost_ms));
  EXPECT_EQ(result.find("devices")->array()->size(), 2u);
}

TEST(Cli, PlansAreTheSameOnAnyNumberOfThreads) {
  const CliFolder folder;
  const auto shards = [&](const char* threads, const char* algorithm) {
    const std::string text =
        expect_success(Arguments{"plan", "--workload", "mlperf-dlrm-dcnv2", "--devices", "4",
                                 "--memory", "80GiB", "--json", "--threads", threads, "--seed", "3",
                                 "--algorithm", algorithm, "--steps", "10000"} +
                       kModels);
    return parse_plan(text, "stdout").plan.shards;
  };
  for (const char* algorithm : {"neuroshard", "random"}) {
    const std::vector<Shard> first = shards("1", algorithm);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(shards("2", algorithm), first);
    EXPECT_EQ(shards("1", algorithm), first);
  }
}

TEST(Cli, PlansWithTheShippedModelUnlessToldOtherwise) {
  const CliFolder folder;
  const CommandResult result =
      run_cli({"plan", folder.write("task.json", kTask), "-o", folder.file("plan.json")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("computation:   cpu-xeon-2core\n"));
  EXPECT_THAT(result.out, HasSubstr("communication: pcie4, pre-trained (simulated)\n"));
}

TEST(Cli, PlanFromAWorkload) {
  const std::string report = expect_success(
      Arguments{"plan", "--workload", "mlperf-dlrm-dcnv2", "--devices", "8", "--local-devices", "4",
                "--memory", "80GiB", "--batch-size", "4096", "--optimizer", "sgd"} +
      kModels);
  EXPECT_THAT(report, StartsWith("26 tables on 8 devices, batch 4096, sgd\n"));
}

TEST(Cli, CollectAndContinue) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  const auto collect = [&](const char* samples) {
    return run_cli({"collect",  "compute",  "--samples", samples,  "--batch-size",
                    "16",       "--tables", "1:2",       "--dims", "4",
                    "--memory", "64MiB",    "--arena",   "1MiB",   "--threads",
                    "1",        "--seed",   "9",         "-o",     costs});
  };
  EXPECT_EQ(collect("1").err, costs + ": 1 sample measured\n");
  const CommandResult second = collect("2");
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.out, "");
  EXPECT_EQ(second.err, costs + ": 1 sample measured\n");
  EXPECT_EQ(collect("2").err, costs + ": 0 samples measured\n");
  EXPECT_EQ(read_compute_costs(costs).samples.size(), 2u);
}

TEST(Cli, TrainOnHostsOfTwoSpeeds) {
  const CliFolder folder;
  std::filesystem::create_directories(folder.file("other"));
  const std::string costs = folder.file("costs.jsonl");
  const std::string other = folder.file("other/costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 60, 1);
  testing_costs::write_costs(other, testing_costs::make_header(), 60, 2);
  const Arguments train{"train", "compute", costs, other, "--speed-per-folder",          "--epochs",
                        "2",     "--name",  "two", "-o",  folder.file("two.safetensors")};
  EXPECT_THAT(expect_success(train), HasSubstr(" times those of "));
  const std::string json = expect_success(train + Arguments{"--force", "--json"});
  const Json document = parse_json(json, "stdout");
  const auto& speeds = std::get<Json::Array>(document.find("speeds")->value());
  ASSERT_EQ(speeds.size(), 2u);
  EXPECT_EQ(*speeds[1].find("folder"), Json(folder.file("other")));
  EXPECT_THAT(expect_success({"model", "show", folder.file("two.safetensors")}),
              HasSubstr("speed.2"));
}

TEST(Cli, CostsThatDependOnTheWidestPieceAreLearnedShownAndPlannedBy) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 60);
  const std::string model = folder.file("model.safetensors");
  (void)expect_success({"train", "compute", costs, "--widest-piece", "--epochs", "3", "-o", model});
  EXPECT_THAT(expect_success({"model", "show", model}),
              testing::ContainsRegex(
                  "widest piece    of a device, its columns: its loads times [01].[0-9]+ up to 32, "
                  ".* up to 512, 1.00 if wider\n"));
  const std::string plan = folder.file("plan.json");
  const std::string task = folder.write("task.json", kTask);
  (void)expect_success({"plan", task, "--model", model, "-o", plan});
  const std::string again = folder.file("again.json");
  (void)expect_success({"plan", task, "--model", model, "--threads", "2", "-o", again});
  const auto shards = [](const std::string& path) {
    return *parse_json(read_file(path), path).find("shards");
  };
  EXPECT_EQ(shards(plan), shards(again));
  EXPECT_THAT(expect_success({"model", "test", model, costs}), HasSubstr("costs.jsonl       60"));
  EXPECT_THAT(expect_success({"model", "show", "cpu-xeon-2core"}),
              testing::Not(HasSubstr("widest piece")));
}

TEST(Cli, AnOffsetForEachOptimizerIsLearnedShownAndPlannedBy) {
  const CliFolder folder;
  std::vector<std::string> costs;
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::rowwise_adagrad}) {
    ComputeCostsHeader header = testing_costs::make_header();
    header.optimizer = optimizer;
    costs.push_back(folder.file(fmt::format("{}.jsonl", to_string(optimizer))));
    testing_costs::write_costs(costs.back(), header, 60);
  }
  const std::string model = folder.file("model.safetensors");
  (void)expect_success({"train", "compute", costs[0], costs[1], "--offset-per-optimizer",
                        "--epochs", "3", "-o", model});
  EXPECT_THAT(expect_success({"model", "show", model}),
              testing::ContainsRegex("optimizers      running anything at all takes [0-9.]+ ms "
                                     "with sgd, [0-9.]+ ms with rowwise_adagrad\n"));
  const std::string task = folder.write("task.json", kTask);
  const std::string plan = folder.file("plan.json");
  (void)expect_success({"plan", task, "--model", model, "-o", plan});
  (void)expect_success({"price", plan, "--model", model});
  EXPECT_THAT(expect_success({"model", "show", "cpu-xeon-2core"}),
              testing::Not(HasSubstr("optimizers ")));
}

TEST(Cli, TrainThenPlanWithTheModel) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 60);
  const std::string model = folder.file("model.safetensors");
  const std::string result = expect_success(
      {"train", "compute", costs, "--epochs", "2", "--seed", "3", "--name", "tiny", "-o", model});
  EXPECT_THAT(result, HasSubstr("unseen combinations"));
  EXPECT_THAT(result, HasSubstr(model + ": 4 networks, best epochs "));
  const std::string json =
      expect_success({"train", "compute", costs, "--epochs", "2", "--seed", "3", "--name", "tiny",
                      "--threads", "2", "--json", "-o", folder.file("again.safetensors")});
  EXPECT_EQ(*parse_json(json, "stdout").find("unseen_tables")->find("samples"), Json(12));
  EXPECT_EQ(read_file(model), read_file(folder.file("again.safetensors")));
  (void)expect_success({"train", "compute", costs, "--architecture", "published", "--epochs", "1",
                        "-o", folder.file("published.safetensors")});

  EXPECT_THAT(expect_success({"model", "show", model}),
              testing::AllOf(HasSubstr("name            tiny\n"), HasSubstr("bounded-loads")));
  EXPECT_THAT(expect_success({"model", "test", model, costs}),
              testing::AllOf(HasSubstr("bias"), HasSubstr("costs.jsonl       60")));
  EXPECT_THAT(expect_success({"model", "test", model, costs, "--json"}),
              HasSubstr("\"samples\": 60"));
  const std::string plan = folder.file("plan.json");
  (void)expect_success({"plan", folder.write("task.json", kTask), "--model", model, "-o", plan});
  EXPECT_THAT(read_file(plan), HasSubstr(read_compute_model(model)->info().model_sha256));
}

TEST(Cli, TestsAModelOnWhatWasMeasuredTwice) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 10);
  const std::string again = folder.file("again.jsonl");
  {
    ComputeCostsWriter writer(again, testing_costs::make_header());
    for (ComputeCostSample sample : read_compute_costs(costs).samples) {
      if (*sample.info.id < 4) sample.forward_ms *= 2.0;
      writer.append(sample);
    }
  }
  const std::string model = folder.file("m.safetensors");
  write_compute_model(*testing_networks::random_model(ComputeArchitecture::bounded_loads, 1),
                      model);
  const std::string samples = folder.file("samples.jsonl");
  const Json json = parse_json(expect_success({"model", "test", model, costs, "--again", again,
                                               "--samples", samples, "--json"}),
                               "stdout");
  const Json& file = json.find("files")->array()->front();
  EXPECT_EQ(*file.find("left_out"), Json(4));
  EXPECT_EQ(*file.find("metrics")->find("samples"), Json(6));
  const std::string lines = read_file(samples);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 6);
  EXPECT_THAT(lines, HasSubstr("\"index\": 4, \"predicted_ms\": "));
}

TEST(Cli, CollectsSetsThatCoverTheSpace) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  (void)expect_success(
      {"collect",  "compute",  "--workload", "coverage",  "--sets", "coverage",     "--max-pass",
       "4MB",      "--slices", "0.9",        "--samples", "4",      "--batch-size", "64",
       "--tables", "1:4",      "--dims",     "4",         "8",      "--arena",      "1MiB",
       "-o",       costs});
  const ComputeCosts read = read_compute_costs(costs);
  EXPECT_EQ(read.samples.size(), 4u);
  EXPECT_EQ(*read.header.sampling->find("max_pass_bytes"), Json(4e6));
}

TEST(Cli, WidthsAreSeparatedByCommasOrSpaces) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  const auto collect = [&](const Arguments& dims) {
    return expect_success(Arguments{"collect", "compute", "--samples", "1", "--batch-size", "16",
                                    "--tables", "1:2", "--arena", "2MiB", "-o", costs, "--dims"} +
                          dims);
  };
  (void)collect({"4,8"});
  const std::string measured = read_file(costs);
  (void)collect({"4", "8"});  // the same ones, so that nothing is left to measure
  EXPECT_EQ(read_file(costs), measured);
  const ComputeCosts read = read_compute_costs(costs);
  EXPECT_EQ(*read.header.sampling->find("dims"), Json(Json::Array{Json(4), Json(8)}));
}

TEST(Cli, CollectsSeveralBatchSizesAndOptimizersIntoAFileEach) {
  const CliFolder folder;
  const auto collect = [&](const Arguments& chosen) {
    return Arguments{"collect",  "compute", "--workload", "coverage", "--samples", "2",
                     "--tables", "1:2",     "--dims",     "4",        "--arena",   "1MiB"} +
           chosen;
  };
  (void)expect_success(
      collect({"--batch-size", "16,32", "--optimizer", "sgd,rowwise_adagrad", "--seed", "5",
               "--in-flight", "8", "-o", folder.file("b{batch_size}-{optimizer}.jsonl")}));
  const ComputeCosts last = read_compute_costs(folder.file("b32-rowwise_adagrad.jsonl"));
  EXPECT_EQ(last.header.batch_size, 32);
  EXPECT_EQ(last.header.optimizer, Optimizer::rowwise_adagrad);
  EXPECT_EQ(*last.header.sampling->find("seed"), Json(8));
  EXPECT_EQ(last.samples.size(), 2u);
  const ComputeCosts first = read_compute_costs(folder.file("b16-sgd.jsonl"));
  EXPECT_EQ(first.samples.size(), 2u);
  EXPECT_NE(first.header.tables.front().num_embeddings, last.header.tables.front().num_embeddings);

  // Each file is what a command of its own would continue.
  EXPECT_THAT(expect_success(collect({"--workload-seed", "3", "--batch-size", "32", "--optimizer",
                                      "rowwise_adagrad", "--seed", "8", "--in-flight", "8", "-o",
                                      folder.file("b32-rowwise_adagrad.jsonl")})),
              testing::IsEmpty());
}

TEST(Cli, CollectsWhereAModelIsLeastSure) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  const Arguments collect{"collect",      "compute", "--workload", "coverage", "--samples", "2",
                          "--tables",     "1:2",     "--dims",     "4",        "--arena",   "1MiB",
                          "--batch-size", "16",      "-o",         costs};
  (void)expect_success(collect + Arguments{"--least-sure", "cpu-xeon-2core", "--candidates", "3"});
  const std::optional<Json> sampling = read_compute_costs(costs).header.sampling;
  ASSERT_TRUE(sampling);
  EXPECT_EQ(*sampling->find("candidates"), Json(3));
  EXPECT_EQ(sampling->find("least_sure")->text()->size(), 64u);
  EXPECT_THAT(run_cli(collect + Arguments{"--least-sure", "analytic-cpu"}).err,
              HasSubstr("--least-sure: expected a computation model of several networks, got "
                        "analytic-cpu"));
  EXPECT_THAT(run_cli(collect + Arguments{"--least-sure", "ethernet-25g"}).err,
              HasSubstr("--least-sure: expected a computation model of several networks"));
}

TEST(Cli, CollectsSetsOfPlans) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  const Arguments collect{
      "collect", "compute",      "--workload", "criteo-kaggle", "--samples", "4",  "--dims",
      "4",       "--batch-size", "16",         "--arena",       "1MiB",      "-o", costs};
  const Arguments planned =
      collect + Arguments{"--sets", "plans", "--planned-by", "cpu-xeon-2core"};
  (void)expect_success(planned);
  const ComputeCosts measured = read_compute_costs(costs);
  EXPECT_EQ(measured.samples.size(), 4u);
  ASSERT_TRUE(measured.header.sampling);
  EXPECT_EQ(*measured.header.sampling->find("kind"), Json("plans"));
  EXPECT_EQ(measured.header.sampling->find("made_by")->text()->size(), 64u);
  EXPECT_THAT(expect_success(planned), testing::IsEmpty());  // nothing is left to measure
  // Plans of another model are other sets.
  EXPECT_THAT(run_cli(collect + Arguments{"--sets", "plans", "--planned-by", "cpu-epyc-2core"}).err,
              HasSubstr("sampling"));
  for (const Arguments& alone :
       {Arguments{"--sets", "plans"}, Arguments{"--planned-by", "cpu-xeon-2core"}}) {
    EXPECT_THAT(run_cli(collect + alone).err,
                HasSubstr("--sets plans and --planned-by go together"));
  }
}

TEST(Cli, WarnsOfExtrapolationOnStderrOnly) {
  const CliFolder folder;
  ComputeModelInfo info = testing_networks::wide_info("narrow");
  info.range.max_batch_size = 512;
  write_compute_model(
      NeuralComputeModel(testing_networks::random_network(ComputeArchitecture::bounded_loads, 1),
                         info),
      folder.file("narrow.safetensors"));
  const CommandResult result =
      run_cli({"plan", folder.write("task.json", kTask), "--model",
               folder.file("narrow.safetensors"), "--model", "analytic-pcie4", "--json",
               // Before a slow build has anything to say of how far it is.
               "--steps", "1"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "neuroshard: warning: narrow: batch_size: trained on 1 to 512, got 1024\n");
  EXPECT_NO_THROW((void)parse_plan(result.out, "stdout"));
}

TEST(Cli, ModelListAndShow) {
  EXPECT_THAT(expect_success({"model", "list"}),
              testing::AllOf(HasSubstr("analytic-a100-40gb"), HasSubstr("estimate"),
                             HasSubstr("communication  pre-trained (simulated)  ")));
  EXPECT_THAT(expect_success({"model", "show", "a100-40gb"}),
              HasSubstr("compute (an estimate, not measured)"));
  EXPECT_THAT(expect_success({"model", "show", "analytic-pcie4"}), HasSubstr("communication"));
  EXPECT_THAT(expect_success({"model", "show", "pcie4"}),
              HasSubstr("interconnect    pcie4, pre-trained (simulated): 2 to 32 devices"));
}

TEST(Cli, TheCriteoWorkloadsAreShownDrawnFromAndPlanned) {
  const CliFolder folder;
  const std::string listed = expect_success({"workload", "list"});
  for (const char* name : {"criteo-kaggle", "criteo-terabyte-40m", "criteo-terabyte"}) {
    EXPECT_THAT(listed, HasSubstr(name));
    EXPECT_THAT(expect_success({"workload", "show", name}), HasSubstr("; taken as uniform\n"));
    (void)expect_success(
        {"workload", "tasks", name, "--count", "2", "--memory", "64GiB", "-o", folder.file(name)});
    EXPECT_GE(read_task(folder.file(name) + "/task-0.json").tables.size(), 10U);
  }
  const std::string plan = folder.file("plan.json");
  (void)expect_success({"plan", "--workload", "criteo-kaggle", "--devices", "2", "--memory",
                        "16GiB", "--steps", "100", "-o", plan});
  EXPECT_EQ(read_plan(plan).task.batch_size, 2048);
}

TEST(Cli, WorkloadExportWritesATask) {
  const CliFolder folder;
  const std::string task = folder.file("task.json");
  EXPECT_EQ(expect_success({"workload", "export", "mlperf-dlrm-dcnv2", "-o", task}),
            "26 tables on 8 devices written to " + task + "\n");
  EXPECT_EQ(read_task(task).topology.memory_bytes.front(), std::int64_t{80} << 30);
  (void)expect_success({"workload", "export", "mlperf-dlrm-dcnv2", "--devices", "4", "--memory",
                        "1GiB", "--batch-size", "512", "-o", task});
  EXPECT_EQ(read_task(task).topology.world_size, 4);
  EXPECT_EQ(read_task(task).batch_size, 512);
}

TEST(Cli, WorkloadTasksOfAWorkloadOfFewTables) {
  const CliFolder folder;
  (void)expect_success({"workload", "tasks", "mlperf-dlrm-dcnv2", "--count", "3", "--memory",
                        "64GiB", "-o", folder.file("tasks")});
  for (const char* task : {"tasks/task-0.json", "tasks/task-1.json", "tasks/task-2.json"}) {
    EXPECT_GE(read_task(folder.file(task)).tables.size(), 10U);
  }
}

TEST(Cli, PlanATaskFileOnOtherDevices) {
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "--devices", "4",
                                 "--local-devices", "2", "--memory", "4MiB", "--optimizer",
                                 "rowwise_adagrad", "-o", plan} +
                       kModels);
  const Topology topology = read_plan(plan).task.topology;
  EXPECT_EQ(topology.world_size, 4);
  EXPECT_EQ(topology.local_world_size, 2);
  EXPECT_THAT(topology.memory_bytes, testing::Each(std::int64_t{4} << 20));
  EXPECT_EQ(read_plan(plan).task.optimizer, Optimizer::rowwise_adagrad);
}

TEST(Cli, PlanLikeMakesThePlanAgain) {
  const CliFolder folder;
  const std::string first = folder.file("first.json");
  const std::string again = folder.file("again.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "--seed", "5", "--steps",
                                 "500", "--pessimism", "0.25", "--baselines", "-o", first} +
                       kModels);
  (void)expect_success({"plan", "--like", first, "-o", again});
  const PlanDocument one = read_plan(first);
  const PlanDocument other = read_plan(again);
  EXPECT_EQ(other.plan.shards, one.plan.shards);
  EXPECT_EQ(other.predicted->cost_ms, one.predicted->cost_ms);
  EXPECT_EQ(*other.search.find("options"), *one.search.find("options"));
  EXPECT_EQ(*one.search.find("options")->find("pessimism"), Json(0.25));
  for (const Arguments& option : {Arguments{"--seed", "5"}, Arguments{"--workload", "dlrm-2021"},
                                  Arguments{"--threads", "1"}}) {
    expect_refusal(folder, Arguments{"plan", "--like", first} + option,
                   "--like excludes " + option[0] +
                       ": only --model, --json, -o, --force, --quiet and --verbose go with it");
  }
  for (const char* option : {"--quiet", "--verbose"}) {
    (void)expect_success({"plan", "--like", first, "-o", again, "--force", option});
  }
  expect_refusal(folder, {"plan", "--like", first, "--model", "analytic-a100-80gb"},
                 "not the computation model that the plan was made with");
}

TEST(Cli, PriceByThePlansModelsOrOthers) {
  const CliFolder folder;
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
  EXPECT_EQ(parse_plan(expect_success({"price", plan, "--json"}), "stdout").predicted->cost_ms,
            read_plan(plan).predicted->cost_ms);
  const std::string priced = folder.file("priced.json");
  EXPECT_THAT(expect_success({"price", plan, "--model", "analytic-cpu", "-o", priced}),
              testing::AllOf(HasSubstr("computation:   analytic-cpu"), HasSubstr("lower bound: "),
                             HasSubstr("written to " + priced)));
  EXPECT_NE(read_plan(priced).predicted->cost_ms, read_plan(plan).predicted->cost_ms);
  EXPECT_EQ(read_plan(priced).plan.shards, read_plan(plan).plan.shards);
}

TEST(CliHappyPaths, ATaskMayFollowAModel) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  EXPECT_THAT(expect_success(Arguments{"plan", "--steps", "100"} + kModels + Arguments{task}),
              HasSubstr("computation:   analytic-a100-40gb"));
  expect_refusal(folder, {"plan", task, "--model", "a100-40gb", "analytic-a100-nvswitch"},
                 "analytic-a100-nvswitch");
}

}  // namespace
}  // namespace neuroshard
