// `report` and `evaluate -o`: the page, its JSON, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/io/json/json.h"
#include "neuroshard/io/plan_io.h"
#include "tests/cli/run_cli.h"
#include "tests/train/synthetic_costs.h"

namespace neuroshard {
namespace {

using namespace testing_cli;
using testing::HasSubstr;

/// A plan of kTask; `more` are further options.
std::string planned(const CliFolder& folder, const std::string& name, const Arguments& more = {}) {
  const std::string task = folder.write("task.json", kTask);
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "-o", folder.file(name)} +
                       kModels + more);
  return folder.file(name);
}

TEST(CliReport, WritesAPageOfPlansAndEvaluations) {
  const CliFolder folder;
  const std::string plan = planned(folder, "plan.json", {"--baselines"});
  const std::string columns = planned(folder, "columns.json", {"--cuts", "columns"});
  const std::string measured = folder.file("measured.json");
  EXPECT_THAT(expect_success({"evaluate", plan, "--arena", "1MiB", "-o", measured}),
              testing::EndsWith("\nwritten to " + measured + "\n"));
  EXPECT_THAT(read_file(measured), HasSubstr("\"plan_sha256\""));
  const std::string simulated = folder.file("simulated.json");
  (void)expect_success({"evaluate", plan, "--platform", "pcie4", "-o", simulated, "--json"});
  const std::string page = folder.file("report.html");
  EXPECT_THAT(expect_success({"report", plan, columns, "--evaluation", measured, "--evaluation",
                              simulated, "-o", page}),
              testing::StartsWith("written to " + page + " ("));
  EXPECT_THAT(read_file(page), testing::StartsWith("<!DOCTYPE html>"));
  const Json json = parse_json(expect_success({"report", plan, columns, "--evaluation", measured,
                                               "--evaluation", simulated, "--json"}),
                               "stdout");
  EXPECT_EQ(*json.find("format"), Json("neuroshard/report/1"));
  const Json::Array& plans = *json.find("plans")->array();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].find("evaluations")->array()->size(), 2u);
  EXPECT_EQ(*plans[1].find("name"), Json(columns));
}

TEST(CliReport, TheSamePlansGiveTheSamePage) {
  const CliFolder folder;
  const std::string plan = planned(folder, "plan.json");
  (void)expect_success({"report", plan, "-o", folder.file("a.html")});
  (void)expect_success({"report", plan, "-o", folder.file("b.html")});
  EXPECT_EQ(read_file(folder.file("a.html")), read_file(folder.file("b.html")));
}

TEST(CliReport, RefusesWhatDoesNotGoTogether) {
  const CliFolder folder;
  const std::string plan = planned(folder, "plan.json");
  const std::string page = folder.file("report.html");
  expect_refusal(folder, {"report", plan},
                 "report: expected -o FILE for the page, or --json, got neither");
  expect_refusal(folder, {"report", plan, "--json", "-o", "-"},
                 "report: expected --json or -o -, which both print, got both");
  expect_refusal(folder, {"report", "-o", page}, "plans");
  const std::string text = read_file(plan);
  PlanDocument document = parse_plan(text, plan);
  document.plan = {};
  write_plan(document, folder.file("empty.json"));
  expect_refusal(folder, {"report", folder.file("empty.json"), "-o", page},
                 "empty.json: not valid: table \"user\": columns 0 to 63 are on no device (and 2 "
                 "other violations",
                 1);
  document = parse_plan(text, plan);
  document.task.batch_size *= 2;
  document.task.tables[2].reuse_histogram.reset();
  write_plan(document, folder.file("other.json"));
  expect_refusal(folder, {"report", plan, folder.file("other.json"), "-o", page},
                 "other.json: task.batch_size: expected 1024 as in " + plan + ", got 2048");
  folder.write("gone.json", [&] {
    std::string gone = text;
    const std::string name = "\"table\": \"item\"";
    for (std::size_t at = gone.find(name); at != std::string::npos; at = gone.find(name)) {
      gone.replace(at, name.size(), "\"table\": \"gone\"");
    }
    return gone;
  }());
  expect_refusal(folder, {"report", folder.file("gone.json"), "-o", page},
                 "expected the name of a table of the task, got \"gone\"");
  const std::string measured = folder.file("measured.json");
  (void)expect_success({"evaluate", plan, "--platform", "pcie4", "-o", measured});
  const std::string columns = planned(folder, "columns.json", {"--cuts", "none"});
  expect_refusal(
      folder, {"report", columns, "--evaluation", measured, "-o", page},
      "measured.json: expected an evaluation of " + columns + ", got that of another plan");
  expect_refusal(folder, {"report", plan, "--evaluation", plan, "-o", page},
                 "plan.json: format: expected \"neuroshard/evaluation/1\"");
  expect_refusal(folder, {"evaluate", plan, "--check", "-o", measured}, "--check");
}

TEST(CliReport, OfATraining) {
  const CliFolder folder;
  const std::string costs = folder.file("costs.jsonl");
  testing_costs::write_costs(costs, testing_costs::make_header(), 60);
  const std::string model = folder.file("model.safetensors");
  const Arguments train{"train", "compute", costs, "--epochs", "2", "-o", model, "--report"};
  expect_refusal(folder, train + Arguments{costs},
                 "--report: expected another file than those that are read, got " + costs);
  expect_refusal(folder, train + Arguments{model}, "--report: expected another file");
  expect_refusal(folder, train + Arguments{folder.file("none/report.html")},
                 "none/report.html: expected a writable file");
  expect_refusal(folder,
                 {"train", "communication", costs, "--from", "all-to-all", "-o", model, "--report",
                  folder.file("report.html")},
                 "--report needs all-to-alls, got --from");
  (void)expect_success(train + Arguments{folder.file("report.html")});
  const std::string page = read_file(folder.file("report.html"));
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("\"unseen combinations\""));
}

TEST(CliReport, NamesOfAnyContentAreText) {
  const CliFolder folder;
  const std::string task = folder.write(
      "task.json", replaced(std::string(kTask), "\"user\"",
                            R"("</script><img src=x onerror=alert(1)>\u001b[31m\"'&\u202e")"));
  const std::string plan = folder.file("plan.json");
  (void)expect_success(Arguments{"plan", task, "--steps", "100", "-o", plan} + kModels);
  (void)expect_success({"report", plan, "-o", folder.file("report.html")});
  const std::string page = read_file(folder.file("report.html"));
  EXPECT_THAT(page, testing::Not(HasSubstr("<img")));
  EXPECT_THAT(page, testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace neuroshard
