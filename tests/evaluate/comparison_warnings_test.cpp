// Warnings about many tasks: each reason once, with the number of tasks and the first of them.
#include "neuroshard/evaluate/comparison_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "tests/cost/arbitrary_network.h"
#include "tests/plan/two_networks.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

NamedTask named_task(const std::string& name, std::vector<Table> tables) {
  return {name, one_host_task(std::move(tables), 1, std::int64_t{1} << 40), Json::Object{}};
}

CostModels models_of(const std::string& name) {
  CostModels models;
  models.compute = std::make_shared<NeuralComputeModel>(
      testing_networks::random_network(ComputeArchitecture::bounded_loads, 1),
      testing_networks::wide_info(name));
  models.communication =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch"));
  return models;
}

const std::vector<NamedTask> kTasks{
    named_task("fine", {make_table("a", 1000, 64)}),
    named_task("large", {make_table("a", 1000, 64), make_table("b", 2'000'000, 64)}),
    named_task("many lookups", {make_table("c", 1000, 64, 60.0)}),
    named_task("both", {make_table("d", 3'000'000, 64, 70.0), make_table("e", 4'000'000, 64)})};

TEST(ComparisonWarnings, SayEachReasonOnce) {
  const CostModels models = models_of("narrow");
  EXPECT_THAT(comparison_warnings(kTasks, {&models, 1}),
              ElementsAre("narrow: num_embeddings: trained on 10 to 1000000, got 2000000 "
                          "(\"b\"): 2 of 4 tasks, the first of them large",
                          "narrow: pooling_factor: trained on 0.1 to 50, got 60 (\"c\"): 2 of 4 "
                          "tasks, the first of them many lookups"));
}

TEST(ComparisonWarnings, OfOneTaskAreThoseOfItsPlan) {
  const CostModels models = models_of("narrow");
  EXPECT_THAT(comparison_warnings({kTasks[1]}, {&models, 1}),
              ElementsAre("narrow: num_embeddings: trained on 10 to 1000000, got 2000000 "
                          "(\"b\")"));
  EXPECT_THAT(comparison_warnings({kTasks[0]}, {&models, 1}), IsEmpty());
}

TEST(ComparisonWarnings, OfSeveralModelsAreApart) {
  const std::vector<CostModels> models{models_of("one"), models_of("one"), models_of("one"),
                                       models_of("other")};
  EXPECT_EQ(comparison_warnings(kTasks, models).size(), 4u);
}

TEST(ComparisonWarnings, OfMeasuredPlansSayEachReasonOnce) {
  std::vector<NamedTask> tasks = kTasks;
  for (const std::size_t t : {1, 3}) tasks[t].task.tables[1].num_features = 2;
  const CostModels models = models_of("narrow");
  BackendDescription here;
  here.hardware.set("name", "another");
  EXPECT_THAT(measuring_warnings(tasks, {&models, 1}, here),
              ElementsAre("narrow: measured on processor \"test\", here it is \"another\"",
                          "tables with several features: measured with one pooled output, "
                          "predicted with one for each feature (\"b\"): 2 of 4 tasks, the first "
                          "of them large"));
}

TEST(ComparisonWarnings, SayAboutWhosePlansNetworksDisagree) {
  const CostModels models = models_of("narrow");
  const std::vector<NamedTask> tasks{kTasks[0], kTasks[0], kTasks[1]};
  const auto entry = [](const char* algorithm, std::vector<std::string> warnings) {
    ComparisonEntry result;
    result.algorithm = algorithm;
    result.warnings = std::move(warnings);
    return result;
  };
  const std::vector<ComparisonEntry> entries{
      entry("random", {}),
      entry("neuroshard", {"m: its 2 networks disagree by 50% about device 1"}),
      entry("random", {"m: its 2 networks disagree by 60% about device 0"}),
      entry("neuroshard", {"m: its 2 networks disagree by 70% about device 0"}),
      entry("random", {}),
      entry("neuroshard", {})};
  EXPECT_THAT(
      comparison_warnings(tasks, {&models, 1}, entries),
      ElementsAre("plan of neuroshard: m: its 2 networks disagree by 50% about device 1: 2 of 3 "
                  "tasks, the first of them fine",
                  "plan of random: m: its 2 networks disagree by 60% about device 0: 1 of 3 tasks, "
                  "the first of them fine",
                  "narrow: num_embeddings: trained on 10 to 1000000, got 2000000 (\"b\"): 1 of 3 "
                  "tasks, the first of them large"));
}

TEST(ComparisonWarnings, OfPlansAreThoseOfTheirDevices) {
  const Task task = one_host_task({make_table("a", 1000, 64), make_table("huge", 1'000'000, 64)}, 2,
                                  std::int64_t{1} << 40);
  const ComparisonTask given{
      "t", std::make_shared<Simulator>(
               task, std::make_shared<testing_plan::TwoNetworks>(1000, 3.0),
               std::make_shared<AnalyticCommunicationModel>(find_interconnect("a100-nvswitch")))};
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(find_planner("greedy-dim"));
  const auto entries = compare_on_tasks({&given, 1}, planners, {}, nullptr);
  EXPECT_THAT(entries.front().front().warnings,
              ElementsAre(testing::HasSubstr("two: its 2 networks disagree by 100% about device")));
}

TEST(ComparisonWarnings, AreInTheResult) {
  const CostModels models = models_of("narrow");
  const Json document = comparison_document({&models, 1}, {}, {}, {.warnings = {"narrow: rows"}});
  EXPECT_EQ(*document.find("warnings"), Json(Json::Array{"narrow: rows"}));
}

}  // namespace
}  // namespace neuroshard
