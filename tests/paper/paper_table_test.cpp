// The paper's table: its tasks, its cells, and its text.
#include "neuroshard/paper/paper_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/paper/ablations.h"
#include "neuroshard/workload/workload.h"
#include "tests/cost/narrow_model.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

PaperTableOptions tiny(const std::string& folder) {
  PaperTableOptions options;
  options.devices = {2};
  options.max_dims = {8, 16};
  options.count = 1;
  options.models = {"analytic-a100-40gb", "analytic-pcie4"};
  options.folder = folder;
  return options;
}

TEST(PaperTasks, HaveTablesByTheirDevices) {
  PaperTableOptions options = tiny("");
  options.count = 5;
  const Workload workload = find_workload(options.workload, 0);
  const std::vector<NamedTask> tasks = paper_tasks(options, workload, 4, 16);
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks[3].name, "4x16-003");
  for (const NamedTask& named : tasks) {
    EXPECT_GE(named.task.tables.size(), 10u);
    EXPECT_LE(named.task.tables.size(), 60u);
    EXPECT_EQ(named.task.topology.interconnect, "pcie4");
    EXPECT_EQ(named.task.batch_size, 4096);
  }
}

TEST(PaperTable, ComputesItsCellsAndPrintsThem) {
  const TemporaryFolder folder;
  const PaperTableOptions options = tiny(folder.file("table"));
  ComparisonRun comparison(find_planners({"greedy-dim", "random"}), {});
  std::vector<std::string> progress;
  std::string text;
  const PaperTable table =
      run_paper_table(options, comparison,
                      {.on_progress = [&](const std::string& cell,
                                          const ComparisonProgress&) { progress.push_back(cell); },
                       .on_devices =
                           [&](std::span<const PaperTableCell> of_devices) {
                             text += paper_table_text(options, false, of_devices);
                           }});
  EXPECT_THAT(progress, testing::ElementsAre("devices-2-max-dim-8", "devices-2-max-dim-16"));
  EXPECT_THAT(text, testing::StartsWith(
                        "2 devices, 5 to 30 tables, 1 task a column: mean "
                        "predicted cost [ms] over the tasks that every algorithm "
                        "solved, by largest dimension\n"
                        "computation model: analytic-a100-40gb (an estimate, not measured)\n"
                        "communication model: analytic-pcie4 (an estimate, not measured)\n"));
  EXPECT_THAT(text, testing::HasSubstr("share of tasks solved     8    16\n"
                                       "greedy-dim             100%  100%\n"));
  const Json json = paper_table_json(table);
  EXPECT_EQ(json.find("cells")->array()->size(), 2u);
  EXPECT_EQ(*json.find("warnings"), Json(Json::Array{}));
}

TEST(PaperTable, ItsHeadingStatesNoMoreTablesThanTheWorkloadHas) {
  const TemporaryFolder folder;
  PaperTableOptions options = tiny(folder.file("table"));
  options.workload = "criteo-kaggle";  // of 26 tables
  ComparisonRun comparison(find_planners({"greedy-dim"}), {});
  const PaperTable table = run_paper_table(options, comparison, {});
  EXPECT_THAT(paper_table_text(options, false, table.cells),
              testing::StartsWith("2 devices, 5 to 26 tables, 1 task a column: "));
}

TEST(PaperTable, AMeanOverNoTaskIsADashAndNull) {
  ComparisonSummary unsolved;
  unsolved.algorithm = "random";
  unsolved.tasks = 1;
  PaperTable table;
  table.cells.emplace_back().summaries.push_back(unsolved);
  EXPECT_THAT(paper_table_text(tiny(""), false, table.cells),
              testing::ContainsRegex("random +-\n"));
  const Json json = paper_table_json(table);
  const Json& cell = json.find("cells")->array()->front();
  const Json& summary = cell.find("summary")->array()->front();
  ASSERT_NE(summary.find("mean_predicted_ms"), nullptr);
  EXPECT_EQ(*summary.find("mean_predicted_ms"), Json());
}

TEST(PaperTable, SaysOnceWhatOfAllItsTasksTheModelWasNotTrainedOn) {
  const TemporaryFolder folder;
  const std::string model = folder.file("narrow.safetensors");
  testing_networks::write_narrow_model(model, 20);
  PaperTableOptions options = tiny(folder.file("table"));
  options.models.front() = model;
  ComparisonRun comparison(find_planners({"greedy-dim"}), {});
  const PaperTable table = run_paper_table(options, comparison, {});
  EXPECT_THAT(
      table.warnings,
      testing::ElementsAre(
          testing::AllOf(testing::StartsWith("narrow: num_embeddings: trained on 10 to 20, "),
                         testing::EndsWith(": 2 of 2 tasks, the first of them 2x8-000")),
          testing::StartsWith("narrow: pooling_factor: trained on ")));
  EXPECT_EQ(*paper_table_json(table).find("warnings"),
            Json(Json::Array(table.warnings.begin(), table.warnings.end())));
}

}  // namespace
}  // namespace neuroshard
