// `compare` and `paper-table` as users run them: journals, measured plans, the machine's drift.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "neuroshard/io/json/json.h"
#include "tests/cli/run_cli.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// A journal's text with every `wall_ms` zero: they are those of the run that made an entry.
std::string without_times(const std::string& text) {
  static const std::regex time(R"("wall_ms": [-+.0-9e]+)");
  return std::regex_replace(text, time, R"("wall_ms": 0)");
}

TEST(CliComparison, CompareGoesOnFromItsJournal) {
  const CliFolder folder;
  (void)expect_success(tasks_command(folder.file("tasks")));
  const std::string journal = folder.file("journal.jsonl");
  const Arguments command =
      Arguments{"compare", folder.file("tasks"), "--journal", journal} + kModels;
  const std::string table = expect_success(command);
  const std::string whole = read_file(journal);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 4);
  // As if it had been killed while it wrote the last of three tasks.
  write_file(journal, whole.substr(0, whole.size() - 20));
  const std::string resumed = expect_success(command);
  const std::string finished = read_file(journal);
  EXPECT_EQ(without_times(finished), without_times(whole));
  // A finished comparison is only printed, with the times of the run that made it.
  EXPECT_EQ(expect_success(command), resumed);
  EXPECT_EQ(read_file(journal), finished);
}

TEST(CliComparison, CompareFolderAndFiles) {
  const CliFolder folder;
  (void)expect_success(tasks_command(folder.file("tasks")));
  const std::string results = folder.file("results.json");
  const std::string table =
      expect_success(Arguments{"compare", folder.file("tasks"), "-o", results} + kModels);
  EXPECT_THAT(table, HasSubstr("neuroshard"));
  EXPECT_THAT(table, HasSubstr("mean costs over the 3 tasks that every algorithm solved\n"));
  const Json document = parse_json(read_file(results), results);
  EXPECT_EQ(*document.find("format"), Json("neuroshard/comparison/1"));
  EXPECT_EQ(document.find("summary")->array()->size(), 8u);
  EXPECT_EQ(document.find("entries")->array()->size(), 24u);

  const std::string json = expect_success(Arguments{"compare", folder.file("tasks/task-0.json"),
                                                    "--algorithms", "greedy-dim,random", "--json"} +
                                          kModels);
  EXPECT_EQ(parse_json(json, "stdout").find("entries")->array()->size(), 2u);
}

TEST(CliComparison, CompareMeasures) {
  const CliFolder folder;
  const std::string table =
      expect_success(Arguments{"compare", folder.write("task.json", kTask), "--algorithms",
                               "greedy-dim", "--measure", "--arena", "4MiB"} +
                     kModels);
  EXPECT_THAT(table, HasSubstr("measured compute ms"));
}

TEST(CliComparison, CompareMeasuresOldSamplesWithThePlans) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  (void)expect_success({"collect", "compute", "--samples", "3", "--batch-size", "16", "--tables",
                        "1:2", "--dims", "4", "--arena", "1MiB", "-o", costs});
  const std::string task = folder.write("task.json", kTask);
  const auto compare = [&](const Arguments& controls) {
    return run_cli(
        Arguments{"compare", task, "--algorithms", "greedy-dim", "--measure", "--arena", "4MiB"} +
        kModels + Arguments{"--controls"} + controls);
  };
  EXPECT_THAT(compare({costs}).err,
              HasSubstr("controls: expected samples of batch size 1024, optimizer sgd and tables "
                        "of dlrm-2021, got none"));
  const std::string fitting = folder.file("fitting.jsonl");
  (void)expect_success({"collect", "compute", "--samples", "3", "--batch-size", "1024", "--tables",
                        "1:2", "--dims", "4", "--arena", "1MiB", "-o", fitting});
  for (const Arguments& both :
       {Arguments{costs, fitting}, Arguments{fmt::format("{},{}", costs, fitting)}}) {
    EXPECT_THAT(
        compare(both).out,
        HasSubstr("less drift: the gap at the speed of the controls' or the model's costs"));
  }
}

TEST(CliComparison, CompareRunsTheModelsReferenceSetsNextToThePlans) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", kTask);
  const std::string costs = folder.file("costs.jsonl");
  (void)expect_success({"collect", "compute", "--samples", "40", "--batch-size", "64", "--tables",
                        "1:2", "--dims", "4", "--arena", "4MiB", "--in-flight", "40",
                        "--reference-sets", "-o", costs});
  const std::string model = folder.file("mine.safetensors");
  (void)expect_success({"train", "compute", costs, "--epochs", "1", "--members", "1", "-o", model});
  const auto compare = [&](const char* arena) {
    return run_cli({"compare", task, "--algorithms", "greedy-dim", "--measure", "--arena", arena,
                    "--reference-sets", "--model", model, "--model", "analytic-a100-nvswitch"});
  };
  EXPECT_THAT(compare("4MiB").out,
              HasSubstr("less drift: the gap at the speed of the controls' or the model's costs"));
  const CommandResult other = compare("8MiB");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err,
              HasSubstr("reference sets: expected a model whose samples were measured next to them "
                        "(reference-1, arena_bytes 8388608, quantile 0.25), got mine, which knows "
                        "reference-1, arena_bytes 4194304, quantile 0.25\n"));
}

TEST(CliComparison, PaperTableGoesOnWhereItStopped) {
  const CliFolder folder;
  const auto table = [&](const char* count) {
    return expect_success(Arguments{"paper-table", "--folder", folder.file("table"), "--count",
                                    count, "--devices", "2", "--max-dims", "8,16", "--algorithms",
                                    "neuroshard,beam-search,random", "--steps", "1000", "-o",
                                    folder.file("table.json")} +
                          kModels);
  };
  const std::string first = table("2");
  EXPECT_THAT(first, HasSubstr("2 devices, 5 to 30 tables, 2 tasks a column: mean predicted cost"));
  EXPECT_THAT(first, HasSubstr("share of tasks solved     8    16\n"
                               "neuroshard             100%  100%\n"));
  const Json result = parse_json(read_file(folder.file("table.json")), "table.json");
  ASSERT_EQ(result.find("cells")->array()->size(), 2u);
  // From the folder alone: its files stay as they are.
  const std::string journal = folder.file("table/devices-2-max-dim-8.jsonl");
  const std::string results = read_file(journal);
  EXPECT_EQ(table("2"), first);
  EXPECT_EQ(read_file(journal), results);
  // Another comparison is refused.
  const CommandResult other =
      run_cli(Arguments{"paper-table", "--folder", folder.file("table"), "--count", "2",
                        "--devices", "2", "--max-dims", "8", "--algorithms", "random"} +
              kModels);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("table/devices-2-max-dim-8.jsonl"));
}

}  // namespace
}  // namespace neuroshard
