// What users of command lines are used to: examples, suggestions, --quiet, --verbose and --force.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/run_cli.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(CliConventions, AWrongWordIsAnsweredWithTheNearest) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  expect_refusal(folder, {"plam"}, "; did you mean plan?");
  expect_refusal(folder, {"workload", "lst"}, "; did you mean list?");
  expect_refusal(folder, {"plan", task, "--memroy=1GiB"}, "; did you mean --memory?");
  expect_refusal(folder, {"train", "compute", task, "--epoch", "3"}, "; did you mean --epochs?");
  expect_refusal(folder, {"plan", task, "--model", "a100-40bg"}, "; did you mean a100-40gb?");
  expect_refusal(folder, {"model", "show", "cpu-xeon-2cor"}, "; did you mean cpu-xeon-2core?");
  expect_refusal(folder, {"plan", task, "--algorithm", "neuroshrad"}, "; did you mean neuroshard?");
  expect_refusal(folder, {"workload", "show", "dlrm2021"}, "; did you mean dlrm-2021?");
  expect_refusal(folder, {"plan", task, "--cuts", "colums"}, "; did you mean columns?");
  expect_refusal(folder, {"plan", task, "--improvement", "breif"}, "; did you mean brief?");
  expect_refusal(folder, {"compare", task, "--relative-to", "beamsearch"},
                 "; did you mean beam-search?");
  expect_refusal(folder,
                 {"workload", "tasks", "dlrm-2021", "--optimizer", "rowise_adagrad", "-o", "t"},
                 "; did you mean rowwise_adagrad?");
  expect_refusal(folder, {"collect", "compute", "--sets", "coverge", "-o", "t.jsonl"},
                 "; did you mean coverage?");
  EXPECT_THAT(run_cli({"plan", "--quantum-computer"}).err, Not(HasSubstr("did you mean")));
}

/// Checks the help of a command, and those of its subcommands.
void expect_examples(const Arguments& command) {
  const std::string help = expect_success(command + Arguments{"--help"});
  const std::size_t heading = help.find("\nSubcommands:\n");
  if (heading == std::string::npos) {
    std::string words = "neuroshard";
    for (const std::string& word : command) words += " " + word;
    EXPECT_THAT(help, HasSubstr("\nExamples:\n  " + words));
    EXPECT_THAT(help, AllOf(HasSubstr("-q,--quiet"), HasSubstr("-v,--verbose")));
    return;
  }
  std::size_t at = help.find('\n', heading + 1) + 1;
  while (at < help.size() && help.compare(at, 2, "  ") == 0) {
    const std::size_t end = help.find_first_of(" \n", at + 2);
    if (help[at + 2] != ' ')
      expect_examples(command + Arguments{help.substr(at + 2, end - at - 2)});
    at = help.find('\n', at) + 1;
  }
}

TEST(CliConventions, EveryCommandHasExamples) { expect_examples({}); }

TEST(CliConventions, QuietAndVerbose) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const Arguments plan{"plan", task, "--steps", "100"};
  EXPECT_THAT(run_cli(plan).err, HasSubstr("neuroshard: warning: "));
  for (const char* quiet : {"-q", "--quiet"}) {
    const CommandResult result = run_cli(plan + Arguments{quiet});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_NE(result.out, "");
    // Errors are said in any case.
    EXPECT_THAT(run_cli({"check", folder.file("none"), quiet}).err, HasSubstr("/none: expected "));
  }
  for (const char* verbose : {"-v", "--verbose"}) {
    const CommandResult result = run_cli(plan + Arguments{verbose});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, AllOf(HasSubstr("neuroshard: computation: cpu-xeon-2core, "),
                                  HasSubstr(", sha256 "), HasSubstr("neuroshard: took ")));
  }
  expect_refusal(folder, plan + Arguments{"-q", "-v"}, "excludes");
}

TEST(CliConventions, MeasuredDataAndModelsAreReplacedOnlyWithForce) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 40);
  const std::string task = folder.write("task.json", kTask);
  const std::string model = folder.file("model.safetensors");
  const Arguments train{"train", "compute", costs, "--epochs", "1", "-o", model};
  (void)expect_success(train);
  expect_refusal(folder, train,
                 "model.safetensors: expected a new file, or --force, got a model that is there "
                 "already");
  (void)expect_success(train + Arguments{"--force", "--seed", "2"});
  const std::string merged = folder.file("merged.jsonl.gz");
  (void)expect_success({"collect", "merge", costs, "-o", merged});
  expect_refusal(folder, {"collect", "merge", costs, "-o", merged},
                 "merged.jsonl.gz: expected a new file, or --force, got measured computation "
                 "costs that are there already");
  // By whatever command.
  const std::string plan = folder.file("plan.json");
  const Arguments make{"plan", task, "--steps", "100"};
  (void)expect_success(make + kModels + Arguments{"-o", plan});
  (void)expect_success(make + kModels + Arguments{"-o", plan});
  for (const Arguments& command :
       {make, Arguments{"price", plan}, Arguments{"report", plan}, Arguments{"compare", task},
        Arguments{"evaluate", plan}, Arguments{"workload", "export", "criteo-kaggle"},
        Arguments{"capacity", task, "--devices", "2", "--memory", "1MiB"},
        Arguments{"calibrate", "--model", "cpu-epyc-2core"},
        Arguments{"refine-model", costs, "--folder", folder.file("rounds")}}) {
    expect_refusal(folder, command + Arguments{"-o", model}, "expected a new file, or --force");
    expect_refusal(folder, command + Arguments{"-o", merged}, "expected a new file, or --force");
  }
  (void)expect_success(make + kModels + Arguments{"-o", merged, "--force"});
}

TEST(CliConventions, ArgumentsAreUtf8) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  expect_refusal(folder, {"plan", task, "-o", folder.file("p\xff")},
                 "argument 4: expected text in UTF-8, got ");
  expect_refusal(folder, {"train", "compute", task, "--name", "\xff", "-o", folder.file("m")},
                 "argument 5: expected text in UTF-8, got \"\\xff\"");
  std::filesystem::create_directory(folder.file("tasks"));
  folder.write("tasks/a\xff.json", kTask);
  const CommandResult result = run_cli({"compare", folder.file("tasks")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("tasks: expected names in UTF-8, which results record, got "));
}

TEST(CliConventions, AJournalGoesOnFromAnotherFolder) {
  const CliFolder folder;
  std::filesystem::create_directory(folder.file("tasks"));
  folder.write("tasks/a.json", kTask);
  const auto compare = [&](const std::string& line) {
    const CommandResult result =
        run_program({"bash", "-c", "cd \"$1\" && " + line, NEUROSHARD_EXECUTABLE, folder.file("")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string options =
      " --algorithms greedy-dim --model a100-40gb --model analytic-pcie4 --json --journal ";
  const std::string first = compare("\"$0\" compare tasks" + options + "journal.jsonl");
  const std::string lines = read_file(folder.file("journal.jsonl"));
  const std::string again =
      compare("cd tasks && \"$0\" compare a.json" + options + "../journal.jsonl");
  EXPECT_EQ(read_file(folder.file("journal.jsonl")), lines);
  EXPECT_EQ(replaced(again, "\"a.json\"", "\"tasks/a.json\""), first);
}

}  // namespace
}  // namespace neuroshard
