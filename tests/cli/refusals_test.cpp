// Bad usage and bad input: one line that names the place, exit code 2, and no file touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;

TEST(CliRefusals, Usage) {
  expect_refusals({{{}, "subcommand"},
                   {{"plam"}, "plam"},
                   {{"plan", "--memroy", "1GiB"}, "--memroy"},
                   {{"workload"}, "subcommand"},
                   {{"workload", "lst"}, "lst"},
                   {{"workload", "show"}, "name"},
                   {{"collect", "compute"}, "--output"},
                   {{"train", "compute", "-o", "/tmp/x"}, "costs"},
                   {{"check"}, "plan"},
                   {{"check", "a", "b"}, "b"},
                   {{"model", "show"}, "model"},
                   {{"plan", "--devices"}, "--devices"},
                   {{"compare"}, "tasks"}});
}

/// `plan --workload ...` with an option changed.
Arguments plan_with(const std::string& option, const std::string& value) {
  std::vector<std::pair<std::string, std::string>> options{
      {"--workload", "mlperf-dlrm-dcnv2"}, {"--devices", "4"}, {"--memory", "80GiB"}};
  bool known = false;
  for (auto& [name, given] : options) {
    if (name != option) continue;
    given = value;
    known = true;
  }
  if (!known) options.emplace_back(option, value);
  Arguments arguments = Arguments{"plan"} + kModels;
  for (const auto& [name, given] : options) arguments = arguments + Arguments{name, given};
  return arguments;
}

TEST(CliRefusals, NumbersOfPlan) {
  std::vector<Refused> cases;
  for (const char* devices :
       {"0", "-1", "65537", "99999999999999999999", "4.5", "nan", "four", ""}) {
    cases.push_back({plan_with("--devices", devices), "--devices"});
  }
  for (const char* memory :
       {"0", "-1GiB", "nan", "inf", "1e400GiB", "80 GiB", "80gib", "2000PiB", "1\n2", ""}) {
    cases.push_back({plan_with("--memory", memory), "--memory"});
  }
  for (const char* batch : {"0", "-5", "1073741825", "1e3", "nan"}) {
    cases.push_back({plan_with("--batch-size", batch), "--batch-size"});
  }
  for (const char* local : {"3", "0", "-2", "8"}) {
    cases.push_back({plan_with("--local-devices", local), "local"});
  }
  for (const char* limit : {"0s", "-1s", "1", "soon", "nans", "1e308h"}) {
    cases.push_back({plan_with("--time-limit", limit), "--time-limit"});
  }
  for (const char* seed : {"-1", "1.5", "010", "0x10", "99999999999999999999999"}) {
    cases.push_back({plan_with("--seed", seed), "--seed"});
  }
  for (const char* threads : {"-1", "1000000", "many"}) {
    cases.push_back({plan_with("--threads", threads), "--threads"});
  }
  expect_refusals(cases);
}

TEST(CliRefusals, SharesAndTimesThatAreNoNumbersLeaveNoFile) {
  const CliFolder folder;
  const std::string output = folder.file("costs.jsonl");
  const std::string task = folder.write("task.json", kTask);
  for (const std::string value :
       {"nan", "-nan", "inf", "-1", "1e999", "0x1", "1e-400", "half", ""}) {
    const auto refused = [&](const std::string& option, const Arguments& command) {
      expect_refusal(folder, command + Arguments{option, value}, option);
    };
    for (const char* option : {"--pessimism", "--least-gain"}) {
      refused(option, Arguments{"plan", task} + kModels);
    }
    for (const char* option : {"--quantile", "--held-out", "--slices"}) {
      refused(option, {"collect", "compute", "--samples", "1", "-o", output});
    }
    refused("--max-start-ms", {"collect", "communication", "--backend", "simgrid", "--platform",
                               "pcie4", "--devices", "2", "--samples", "1", "-o", output});
    refused("--learning-rate", {"train", "compute", task, "-o", output});
    refused("--tolerance", {"refine-model", task, "--folder", folder.file("f"), "-o", output});
    refused("--max-pooling-factor", {"workload", "tasks", "dlrm-2021", "-o", folder.file("f")});
  }
}

TEST(CliRefusals, NamesOfPlan) {
  expect_refusals(
      {{plan_with("--workload", "mlperf"), "workload: expected one of "},
       {plan_with("--algorithm", "best"),
        "algorithm: expected one of neuroshard, beam-search, random, "},
       {plan_with("--optimizer", "adam"),
        "--optimizer: expected sgd or rowwise_adagrad, got \"adam\""},
       {plan_with("--improvement", "short"),
        "--improvement: expected thorough or brief, got \"short\""},
       {plan_with("--model", "tpu"), "--model: expected a file or one of "},
       {plan_with("--model", "a100-80gb"), "--model: expected at most one computation model"},
       {{"plan"}, "plan needs a task file or --workload, got neither"},
       {{"plan", "task.json", "--workload", "dlrm-2021"},
        "plan needs a task file or --workload, got both"},
       {{"plan", "--workload", "dlrm-2021", "--devices", "4"}, "--workload needs --memory"},
       {{"plan", "--workload", "dlrm-2021", "--memory", "4GiB"}, "--workload needs --devices"}});
}

TEST(CliRefusals, OptionsThatDoNotGoTogether) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string output = folder.file("output");
  const Arguments communication{"collect", "communication", "--devices", "2", "-o", output};
  const Arguments simulated =
      communication + Arguments{"--backend", "simgrid", "--platform", "pcie4"};
  for (const Refused& refused : std::vector<Refused>{
           {{"plan", "--like", task, "--seed", "1"},
            "--like excludes --seed: only --model, --json, -o, --force, --quiet and --verbose go "
            "with it"},
           {{"compare", task, "--platform", "pcie4"}, "--platform needs --measure"},
           {{"train", "compute", task, "--expected-sets", "9", "-o", output},
            "--expected-sets needs a model to go on from, got no --from"},
           {{"train", "compute", task, "--speed-per-folder", "--from", "m", "-o", output},
            "--speed-per-folder needs a training from nothing, got --from"},
           {{"train", "compute", task, "--from", "m", "--architecture", "published", "-o", output},
            "--from needs --architecture bounded-loads, got published"},
           {{"train", "compute", task, "--from", "m", "--members", "2", "-o", output},
            "--members needs a training from nothing, got --from"},
           {{"train", "communication", task, "--from", "m", "--epochs", "2", "-o", output},
            "--epochs needs all-to-alls, got --from"},
           {{"train", "communication", task, "--from", "m", "--threads", "2", "-o", output},
            "--threads needs all-to-alls, got --from"},
           {{"train", "compute", task, "--widest-piece", "--architecture", "published", "-o",
             output},
            "--widest-piece needs --architecture bounded-loads, got published"},
           {{"train", "compute", task, "--offset-per-optimizer", "--architecture", "published",
             "-o", output},
            "--offset-per-optimizer needs --architecture bounded-loads, got published"},
           {{"train", "compute", task, "--granularity-ms", "1", "--architecture", "published", "-o",
             output},
            "--granularity-ms needs --architecture bounded-loads, got published"},
           {communication + Arguments{"--backend", "simgrid"},
            "--backend simgrid needs --platform"},
           {communication + Arguments{"--backend", "mpi", "--platform", "pcie4"},
            "--platform needs --backend simgrid, got mpi"},
           {simulated + Arguments{"--kind", "all-reduce", "--max-start-ms", "5"},
            "--max-start-ms needs --kind all-to-all, got all-reduce"},
           {simulated + Arguments{"--kind", "partial-sums", "--max-start-ms", "20"},
            "--max-start-ms needs --kind all-to-all, got partial-sums"},
           {simulated + Arguments{"--kind", "all-reduce", "--data-type", "fp16"},
            "--data-type: expected fp32 with --kind all-reduce, got fp16"}}) {
    expect_refusal(folder, refused.arguments, refused.message);
  }
}

TEST(CliRefusals, SettingsThatATaskCannotHave) {
  const CliFolder folder;
  const Arguments plan{"plan", folder.write("task.json", kTask)};
  expect_refusal(folder, plan + Arguments{"--batch-size", "64"} + kModels,
                 "batch_size: expected 1024, for which table \"ad\" gives its reuse histogram");
  expect_refusal(folder, plan + Arguments{"--local-devices", "3"} + kModels, "local_world_size");
  expect_refusal(folder, plan + Arguments{"--workload", "mlperf-dlrm-dcnv2"} + kModels,
                 "plan needs a task file or --workload, got both");
}

TEST(CliRefusals, NumbersOfOtherCommands) {
  const CliFolder folder;
  const std::string output = folder.file("output");
  const auto tasks = [&](const char* option, const char* value) {
    return Arguments{"workload", "tasks", "dlrm-2021", "-o", output, option, value};
  };
  const auto collect = [&](const char* option, const char* value) {
    return Arguments{"collect", "compute", "-o", output, "--arena", "1MiB", option, value};
  };
  for (const Refused& refused : std::vector<Refused>{
           {tasks("--count", "0"), "--count"},
           {tasks("--count", "-3"), "--count"},
           {tasks("--tables", "0:3"), "--tables: expected MIN:MAX with 1 <= MIN <= MAX < 2^31"},
           {tasks("--tables", "1:99999999999"),
            "--tables: expected MIN:MAX with 1 <= MIN <= MAX < 2^31"},
           {tasks("--max-pooling-factor", "1e-300"),
            "max_pooling_factor: expected room for a table of the workload, got 1e-300"},
           {tasks("--tables", "5:3"), "--tables"},
           {tasks("--tables", "3:x"), "--tables"},
           {tasks("--tables", "1:100000"), "max_tables"},
           {tasks("--max-dim", "3"), "--max-dim"},
           {tasks("--max-dim", "6"), "max_dim"},
           {tasks("--devices", "0"), "--devices"},
           {tasks("--memory", "1B"), "task 0: expected "},
           {tasks("--batch-size", "-1"), "--batch-size"},
           {tasks("--count", "010"), "--count"},
           {tasks("--workload-seed", "-1"), "--workload-seed"},
           {tasks("--optimizer", "adam"), "--optimizer"},
           {{"workload", "tasks", "unknown", "-o", output}, "workload: expected one of "},
           {{"workload", "show", "dlrm-2021", "--batch-size", "-1"}, "--batch-size"},
           {{"workload", "show", "dlrm-2021", "--batch-size", "1073741825"}, "--batch-size"},
           {collect("--samples", "0"), "--samples"},
           {collect("--batch-size", "16,32"), "--output: expected {batch_size} in the name"},
           {collect("--optimizer", "sgd,rowwise_adagrad"),
            "--output: expected {optimizer} in the name"},
           {collect("--batch-size", "16,x"), "--batch-size"},
           {{"collect", "compute", "--batch-size", "16,16", "-o", output + "-{batch_size}"},
            "--batch-size, --optimizer: expected each value once, got "},
           {collect("--batch-size", "0"), "--batch-size"},
           {collect("--batch-size", "2000000000"), "--batch-size"},
           {collect("--tables", "0:1"), "--tables"},
           {collect("--dims", "0"), "--dims"},
           {collect("--dims", "65537"), "--dims"},
           {collect("--held-out", "1"),
            "--held-out: expected a share from 0 to below 1, got \"1\""},
           {collect("--held-out", "-0.1"), "--held-out"},
           {collect("--held-out", "nan"), "--held-out"},
           {collect("--memory", "1B"), "memory"},
           {collect("--arena", "1KiB"), "arena"},
           {collect("--data-type", "fp8"), "--data-type: expected fp32 or fp16, got \"fp8\""},
           {collect("--workload", "none"), "workload: expected one of "},
           {{"collect", "compute", "--arena", "1MiB", "-o", folder.file("costs.jsonl.gz")},
            "expected an uncompressed file to append to"}}) {
    expect_refusal(folder, refused.arguments, refused.message);
  }
}

std::string with(std::string_view from, std::string_view to) {
  return replaced(std::string(kTask), from, to);
}

/// A task file's text and what the message must contain.
struct BadTask {
  std::string text;
  std::string message;
};

std::vector<BadTask> malformed_tasks() {
  return {{"", "expected JSON, got nothing"},
          {"{", "line 1, column 1: expected "},
          {std::string(kTask.substr(0, 400)), ": line "},
          {std::string(kTask) + "x", ": line "},
          {"\xff\xfe{}", "line 1, column 1: expected "},
          {"[]", "expected an object, got "},
          {"null", "expected an object, got null"},
          {std::string(100'000, '['), "expected at most 64 levels of nesting, got more"},
          {with("neuroshard/task/1", "neuroshard/task/2"),
           "format: expected \"neuroshard/task/1\", got \"neuroshard/task/2\""},
          {with("neuroshard/task/1", "neuroshard/plan/1"), "format: expected "},
          {with("\"optimizer\": \"sgd\"", "\"optimiser\": \"sgd\""), "optimi"},
          {with("\"optimizer\": \"sgd\"", "\"optimizer\": \"adam\""), "optimizer: expected "},
          {with("\"batch_size\": 1024, ", ""), "batch_size: expected this required field"}};
}

std::vector<BadTask> tasks_with_bad_numbers() {
  return {
      {with("\"batch_size\": 1024", "\"batch_size\": 0"), "batch_size: expected "},
      {with("\"batch_size\": 1024", "\"batch_size\": -1"), "batch_size: expected "},
      {with("\"batch_size\": 1024", "\"batch_size\": 1024.0"), "batch_size: expected "},
      {with("\"batch_size\": 1024", "\"batch_size\": 1e400"), ": line 1, column "},
      {with("\"batch_size\": 1024", "\"batch_size\": NaN"), ": line 1, column "},
      {with("\"num_embeddings\": 1000", "\"num_embeddings\": 99999999999999999999"),
       "tables[0].num_embeddings: expected "},
      {with("\"num_embeddings\": 1000", "\"num_embeddings\": 0"),
       "tables[0].num_embeddings: expected "},
      {with("\"embedding_dim\": 32", "\"embedding_dim\": -32"),
       "tables[1].embedding_dim: expected "},
      {with("\"pooling_factor\": 20.0", "\"pooling_factor\": 0"),
       "tables[2].pooling_factor: expected "},
      {with("\"pooling_factor\": 20.0", "\"pooling_factor\": -Infinity"), ": line 5, column "},
      {with("\"pooling_factor\": 20.0", "\"pooling_factor\": \"20\""),
       "tables[2].pooling_factor: expected a number, got \"20\""},
      {with("\"world_size\": 2,", "\"world_size\": 3,"), "topology.local_world_size: expected "},
      {with("\"memory_bytes\": 1048576", "\"memory_bytes\": [1048576]"),
       "topology.memory_bytes: expected "},
      {with("\"memory_bytes\": 1048576", "\"memory_bytes\": -1"), "topology.memory_bytes"}};
}

std::vector<BadTask> tasks_with_bad_tables() {
  return {
      {with("\"name\": \"item\"", "\"name\": \"user\""),
       "tables[1].name: expected a name not used before, got \"user\", also the name of "
       "tables[0]"},
      {with("\"name\": \"item\"", "\"name\": \"\""), "tables[1].name: expected "},
      {replaced(with("\"name\": \"item\"", "\"name\": \"a\\nb\""), "\"name\": \"user\"",
                "\"name\": \"a\\nb\""),
       "tables[1].name: expected a name not used before"},
      {with("[1, 0, 0,", "[1, 0,"), "tables[2].reuse_histogram: expected an array of 17 shares"},
      {with("[1, 0, 0,", "[1, 0.5, 0,"),
       "tables[2].reuse_histogram: expected 17 shares that add up to 1, got a sum of 1.5"},
      {with("[1, 0, 0,", "[2, -1, 0,"), "tables[2].reuse_histogram[0]: expected a share "},
      {with("\"zipf_exponent\": 1.1", "\"zipf_exponent\": 11"),
       "tables[0].index_distribution.zipf_exponent: expected "},
      {with("\"data_type\": \"fp32\", \"reuse", "\"data_type\": \"fp64\", \"reuse"),
       "tables[2].data_type: expected "}};
}

class BadTasks : public testing::TestWithParam<std::vector<BadTask> (*)()> {};

TEST_P(BadTasks, AreRefusedByNameAndPlace) {
  const CliFolder folder;
  const std::string old_plan = folder.write("plan.json", "an older plan");
  const std::string task = folder.file("task.json");
  for (const BadTask& bad : GetParam()()) {
    write_file(task, bad.text);
    for (const Arguments& command : {Arguments{"plan", task}, Arguments{"compare", task}}) {
      expect_refusal(folder, command + Arguments{"-o", old_plan} + kModels, bad.message);
      const std::string err = run_cli(command + kModels).err;
      EXPECT_THAT(err, testing::StartsWith("neuroshard: " + task + ": "));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadTasks,
                         testing::Values(malformed_tasks, tasks_with_bad_numbers,
                                         tasks_with_bad_tables));

TEST(CliRefusals, FilesThatAreNone) {
  const CliFolder folder;
  const std::string missing = folder.file("none.json");
  const std::string a_folder = folder.file("folder");
  std::filesystem::create_directory(a_folder);
  const std::string too_long = folder.file(std::string(5000, 'x'));
  for (const char* command : {"plan", "check", "evaluate"}) {
    expect_refusal(folder, {command, missing}, missing + ": expected a readable file, got No such");
    expect_refusal(folder, {command, a_folder}, "expected a readable file, got Is a directory");
    expect_refusal(folder, {command, too_long}, "expected a readable file, got File name too long");
  }
  expect_refusal(folder, {"compare", missing}, missing + ": expected a readable file");
  expect_refusal(folder, {"compare", a_folder},
                 "expected a folder with task files (.json), got none in it");
  expect_refusal(folder, {"compare", too_long}, "File name too long");
  const Arguments controlled{"compare", folder.write("task.json", kTask), "--controls", missing};
  expect_refusal(folder, controlled, "--controls needs --measure");
  const Arguments referred{"compare", folder.file("task.json"), "--reference-sets"};
  expect_refusal(folder, referred, "--reference-sets needs --measure");
  expect_refusal(folder, referred + Arguments{"--measure", "--controls", missing}, "excludes --");
  expect_refusal(folder, referred + Arguments{"--measure", "--backend", "cuda"},
                 "--reference-sets goes with --backend cpu");
  expect_refusal(folder, referred + Arguments{"--measure", "--model", "analytic-cpu"},
                 "quantile 0.25), got analytic-cpu, which knows none");
  expect_refusal(folder, controlled + Arguments{"--measure"},
                 missing + ": expected a readable file, got No such");
  // Files separated by commas, unless one is called so.
  const std::string two = missing + "," + folder.file("other.jsonl");
  const Arguments compare{"compare", folder.file("task.json"), "--measure", "--controls", two};
  expect_refusal(folder, compare, missing + ": expected a readable file, got No such");
  const std::string comma = folder.write("a,b.jsonl", "{}");
  expect_refusal(folder, {"compare", folder.file("task.json"), "--measure", "--controls", comma},
                 "a,b.jsonl: ");
  expect_refusal(folder, {"plan", folder.file("line\nbreak")}, "expected a readable file");
  const Arguments train{"train", "compute", "-o", folder.file("m.safetensors")};
  expect_refusal(folder, train + Arguments{missing}, missing + ": expected a readable file");
  expect_refusal(folder, train + Arguments{a_folder}, "Is a directory");
  expect_refusal(folder, {"model", "show", "./none.safetensors"}, "expected a readable file");
  expect_refusal(folder, {"model", "show", "none"}, "model: expected a file or a name");
}

std::string valid_plan(const CliFolder& folder) {
  const std::string plan = folder.file("valid-plan.json");
  (void)expect_success(Arguments{"plan", folder.write("task.json", kTask), "-o", plan} + kModels);
  return read_file(plan);
}

TEST(CliRefusals, MalformedPlans) {
  const CliFolder folder;
  const std::string valid = valid_plan(folder);
  const std::string path = folder.file("plan.json");
  const std::vector<BadTask> cases{
      {valid.substr(0, valid.size() / 2), ": line "},
      {replaced(valid, "neuroshard/plan/1", "neuroshard/plan/9"), "format: expected "},
      {replaced(valid, "\"shards\"", "\"shard\""), "expected no fields but "},
      {replaced(valid, "\"batch_size\": 1024", "\"batch_size\": 0"), "task.batch_size: expected "},
      {replaced(valid, "\"cost_ms\":", "\"cost_ms\": -1, \"x\":"), "predicted"},
      {std::string(kTask), "format: expected \"neuroshard/plan/1\""}};
  for (const BadTask& bad : cases) {
    write_file(path, bad.text);
    expect_refusal(folder, {"check", path}, bad.message);
    expect_refusal(folder, {"evaluate", path, "--arena", "1MiB"}, bad.message);
  }
}

TEST(CliRefusals, APaperTableByAModelThatIsNoneLeavesNoFolder) {
  const CliFolder folder;
  expect_refusal(folder,
                 {"paper-table", "--folder", folder.file("results"), "--count", "1", "--devices",
                  "2", "--max-dims", "4", "--model", "1:2"},
                 "--model: expected a file or one of ");
}

// As "$OLD_PLAN" is where no variable is called so.
TEST(CliRefusals, EmptyValues) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const Arguments communication{"collect",    "communication", "--backend", "simgrid",
                                "--platform", "pcie4",         "--devices", "2"};
  for (const Arguments& command :
       {Arguments{"plan", task, "--output"},
        Arguments{"plan", task, "--from"},
        Arguments{"plan", "--like"},
        Arguments{"plan", task, "--memory"},
        Arguments{"plan", task, "--optimizer"},
        Arguments{"plan", "--workload"},
        Arguments{"plan", task, "--algorithm"},
        Arguments{"plan", task, "--cuts"},
        Arguments{"price", task, "--model"},
        Arguments{"evaluate", task, "--platform"},
        Arguments{"compare", task, "--platform"},
        Arguments{"compare", task, "--journal"},
        Arguments{"compare", task, "--controls"},
        Arguments{"compare", task, "--algorithms"},
        Arguments{"report", task, "--evaluation"},
        Arguments{"capacity", task, "--devices"},
        Arguments{"workload", "export", "criteo-kaggle", "--output"},
        Arguments{"workload", "tasks", "dlrm-2021", "--output"},
        Arguments{"workload", "tasks", "dlrm-2021", "--fill"},
        Arguments{"train", "compute", task, "--output"},
        Arguments{"train", "compute", task, "--from"},
        Arguments{"train", "compute", task, "--name"},
        Arguments{"train", "communication", task, "--from"},
        Arguments{"calibrate", "--model", "cpu-xeon-2core", "--output"},
        Arguments{"calibrate", "--folder"},
        Arguments{"collect", "compute", "--output"},
        Arguments{"collect", "compute", "--least-sure"},
        Arguments{"collect", "compute", "--planned-by"},
        Arguments{"collect", "compute", "--data-type"},
        communication + Arguments{"--output"},
        communication + Arguments{"--interconnect"},
        Arguments{"paper-table", "--folder"},
        Arguments{"refine-model", task, "--interconnect"},
        Arguments{"model", "test", "cpu-xeon-2core", task, "--samples"}}) {
    expect_refusal(folder, command + Arguments{""},
                   command.back() + ": expected a value, got \"\"");
    expect_refusal(folder,
                   Arguments(command.begin(), command.end() - 1) +
                       Arguments{command.back() + "=", "-o", folder.file("out")},
                   command.back() + ": expected a value, got \"\"");
  }
  for (const auto& [command, argument] :
       std::vector<std::pair<Arguments, std::string>>{{{"plan"}, "task"},
                                                      {{"check"}, "plan"},
                                                      {{"compare", task}, "tasks"},
                                                      {{"workload", "show"}, "name"},
                                                      {{"workload", "export"}, "name"},
                                                      {{"train", "compute", task}, "costs"},
                                                      {{"model", "show"}, "model"}}) {
    expect_refusal(folder, command + Arguments{""}, argument + ": expected a value, got \"\"");
  }
}

TEST(CliRefusals, TasksAmongThoseOfAnotherRun) {
  const CliFolder folder;
  const Arguments tasks{"workload", "tasks", "dlrm-2021",          "--tables",
                        "2:4",      "-o",    folder.file("tasks"), "--count"};
  (void)expect_success(tasks + Arguments{"11"});
  expect_refusal(folder, tasks + Arguments{"10"},
                 "tasks: expected a folder without other tasks than task-0.json to task-9.json, "
                 "got task-00.json and 10 more");
  (void)expect_success(tasks + Arguments{"11"});
}

TEST(CliRefusals, OptionsThatWouldDoNothing) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const Arguments table{"paper-table", "--folder", folder.file("cells"), "--count", "1"};
  const std::string seed = "--workload-seed needs --workload";
  for (const Refused& refused :
       std::vector<Refused>{{{"compare", task, "--arena", "1GiB"}, "--arena needs --measure"},
                            {{"compare", task, "--backend", "cuda"}, "--backend needs --measure"},
                            {{"compare", task, "--gpus", "0"}, "--gpus needs --measure"},
                            {table + Arguments{"--arena", "1GiB"}, "--arena needs --measure"},
                            {{"plan", task, "--workload-seed", "3"}, seed},
                            {{"plan", task, "--from", task, "--workload-seed", "3"}, seed}}) {
    expect_refusal(folder, refused.arguments, refused.message);
  }
}

TEST(CliRefusals, ATaskThatIsInAFolderOfTheSameComparison) {
  const CliFolder folder;
  std::filesystem::create_directory(folder.file("tasks"));
  const std::string task = folder.write("tasks/a.json", kTask);
  expect_refusal(folder, {"compare", folder.file("tasks"), task},
                 task + ": expected each task once, got the file of " + task + " again");
}

TEST(CliRefusals, OptionsOfSeveralWordsLeaveTheTaskAlone) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  (void)expect_success(Arguments{"plan", "--cuts", "columns,rows", task, "--steps", "10"} +
                       kModels);
  (void)expect_success(Arguments{"compare", "--algorithms", "random", task} + kModels);
  (void)expect_success(
      Arguments{"capacity", "--memory", "1MiB,2MiB", task, "--devices", "2", "--steps", "10"} +
      kModels);
}

}  // namespace
}  // namespace neuroshard
