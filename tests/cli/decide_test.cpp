// `explain` and `capacity` from end to end, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "neuroshard/io/json/json.h"
#include "neuroshard/io/task_io.h"
#include "tests/cli/run_cli.h"
#include "tests/cost/narrow_model.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

struct PlannedFile {
  CliFolder folder;
  std::string task = folder.write("task.json", std::string(kTask));
  std::string plan = folder.file("plan.json");

  PlannedFile() {
    (void)expect_success(Arguments{"plan", task, "--steps", "500", "-o", plan} + kModels);
  }
  [[nodiscard]] std::string first_table() const { return read_task(task).tables.front().name; }
};

std::string format_of(const std::string& text) {
  return *parse_json(text, "answer").find("format")->text();
}

TEST(CliExplain, AnswersInWordsAndAsJson) {
  const PlannedFile file;
  EXPECT_THAT(expect_success({"explain", file.plan}), HasSubstr("It is limited by the "));
  EXPECT_EQ(format_of(expect_success({"explain", file.plan, "--json"})),
            "neuroshard/explanation/1");
  const std::string table = file.first_table();
  EXPECT_THAT(expect_success({"explain", file.plan, "--table", table}),
              HasSubstr("Table \"" + table + "\" has "));
  EXPECT_EQ(format_of(expect_success({"explain", file.plan, "--table", table, "--json"})),
            "neuroshard/table-explanation/1");
  EXPECT_THAT(expect_success({"explain", file.plan, "--why-not", table + ":device=0"}),
              HasSubstr("With table \"" + table + "\" on device 0"));
  EXPECT_EQ(
      format_of(expect_success({"explain", file.plan, "--why-not", table + ":device=0", "--json"})),
      "neuroshard/why-not/1");
}

/// That the models are named in the answer and, verbosely, on stderr; and that there is nothing to
/// warn of.
void expect_models_and_warnings(const Arguments& command) {
  const Json json = parse_json(expect_success(command + Arguments{"--json"}), "answer");
  for (const char* field : {"compute_model", "communication_model", "communication_is_simulated"}) {
    EXPECT_NE(json.find(field), nullptr) << field;
  }
  ASSERT_NE(json.find("warnings"), nullptr);
  EXPECT_EQ(*json.find("warnings"), Json(Json::Array{}));
  const CommandResult result = run_cli(command + Arguments{"--verbose"});
  EXPECT_THAT(result.out, HasSubstr("\nmodels: "));
  EXPECT_THAT(result.err, HasSubstr("neuroshard: computation: "));
}

TEST(CliExplain, SaysWhatItsModelsWereNotTrainedOn) {
  const CliFolder folder;
  const std::string task = folder.write("task.json", std::string(kTask));
  const std::string plan = folder.file("plan.json");
  const std::string model = folder.file("narrow.safetensors");
  testing_networks::write_narrow_model(model, 20);
  const Arguments models{"--model", model, "--model", "analytic-a100-nvswitch"};
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "-o", plan} + models);
  const std::string warning = "narrow: num_embeddings: trained on 10 to 20, got ";
  for (const Arguments& command :
       {Arguments{"explain", plan},
        Arguments{"explain", plan, "--table", read_task(task).tables.front().name},
        Arguments{"capacity", task, "--devices", "4", "--memory", "80GiB"}}) {
    const CommandResult result = run_cli(command + models + Arguments{"--json"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("warning: " + warning)) << command.front();
    const Json json = parse_json(result.out, "answer");
    const Json::Array& lines = *json.find("warnings")->array();
    ASSERT_FALSE(lines.empty()) << command.front();
    EXPECT_THAT(*lines.front().text(), testing::StartsWith(warning)) << command.front();
  }
}

TEST(CliExplain, NamesItsModelsAndWarnings) {
  const PlannedFile file;
  const std::string table = file.first_table();
  expect_models_and_warnings({"explain", file.plan});
  expect_models_and_warnings({"explain", file.plan, "--table", table});
  expect_models_and_warnings({"explain", file.plan, "--why-not", table + ":device=0"});
  expect_models_and_warnings(
      Arguments{"capacity", file.task, "--devices", "4", "--memory", "80GiB"} + kModels);
}

TEST(CliExplain, Refusals) {
  const PlannedFile file;
  const std::string table = file.first_table();
  const auto refused = [&](const Arguments& more, const std::string& message) {
    expect_refusal(file.folder, Arguments{"explain", file.plan} + more, message);
  };
  refused({"--table", ""}, "--table: expected a value, got \"\"");
  refused({"--why-not", ""}, "--why-not: expected a value, got \"\"");
  refused({"--table", "none"}, "--table: expected the name of a table of the plan's task");
  refused({"--why-not", table}, "--why-not: expected TABLE:rows=R, TABLE:columns=C");
  refused({"--why-not", table + ":device=99"}, "--why-not: expected a device from 0 to ");
  refused({"--table", table, "--why-not", table + ":replicated"}, "--table excludes --why-not");
  refused({"--time-limit", "soon"}, "--time-limit");
  refused({"--table", table, "--time-limit", "1s"},
          "--table excludes --time-limit, as it plans nothing");
  refused({"--table", table, "--threads", "2"}, "--table excludes --threads, as it plans nothing");
  refused({"--why-not", table + ":device=0", "--threads", "2"},
          "--why-not excludes --threads, as it plans on one thread");
  expect_refusal(file.folder, {"explain", file.folder.file("none.json")}, "none.json");
}

TEST(CliCapacity, AnswersInWordsAsJsonAndInAFile) {
  const PlannedFile file;
  const Arguments command =
      Arguments{"capacity", file.task, "--devices", "1:4", "--memory", "1GiB,80GiB", "--quiet"} +
      kModels;
  const CommandResult shown = run_cli(command);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("the smallest that fits: "));
  const std::string output = file.folder.file("capacity.json");
  EXPECT_EQ(format_of(expect_success(command + Arguments{"--json", "-o", output})),
            "neuroshard/capacity/1");
  EXPECT_EQ(format_of(read_file(output)), "neuroshard/capacity/1");
}

TEST(CliCapacity, SaysThatNothingFits) {
  const PlannedFile file;
  const CommandResult result =
      run_cli(Arguments{"capacity", file.task, "--devices", "1", "--memory", "1KiB"} + kModels);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no plan fits on any of these clusters"));
}

TEST(CliCapacity, Refusals) {
  const PlannedFile file;
  const auto refused = [&](const std::string& devices, const std::string& memory,
                           const std::string& message) {
    expect_refusal(
        file.folder,
        Arguments{"capacity", file.task, "--devices", devices, "--memory", memory} + kModels,
        message);
  };
  refused("8:4", "1GiB", "--devices: expected numbers of devices such as 4:64");
  refused("4", "1 GiB", "--memory");
  refused("4", "", "--memory");
  expect_refusal(
      file.folder,
      Arguments{"capacity", file.task, "--devices", "4", "--memory", "1GiB", "--steps", "0"},
      "--steps");
  expect_refusal(file.folder, {"capacity", file.task}, "--devices");
}

}  // namespace
}  // namespace neuroshard
