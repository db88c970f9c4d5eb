// What is said of parts of a plan that its communication model prices without having learned them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "neuroshard/cost/communication/neural_communication_model.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/report/planning_report.h"
#include "tests/cost/arbitrary_communication.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_networks::random_communication_network;
using testing_networks::two_clusters;
using testing_tasks::make_table;

constexpr const char* kAllReduce =
    "has learned no all-reduces: that of the copies is priced by the links' rates alone";
constexpr const char* kPartialSums =
    "has learned no partial sums: adding up those of slices of rows is priced by the memory's rate "
    "alone";

const ShardingPlan kColumns{{{0, 0, 16, 0}, {1, 0, 16, 1}}};
const ShardingPlan kSlices{{{0, 0, 16, 0, 0, 500}, {0, 0, 16, 1, 500, 500}, {1, 0, 16, 1}}};
const ShardingPlan kCopy{{{0, 0, 16, 0}}, {1}};
const ShardingPlan kSlicesAndCopy{{{0, 0, 16, 0, 0, 500}, {0, 0, 16, 1, 500, 500}}, {1}};

TEST(UnlearnedCosts, NameWhatAPlanHasOfIt) {
  const NeuralCommunicationModel of_all_to_alls(random_communication_network(1), two_clusters(), 0);
  EXPECT_THAT(unlearned_costs(of_all_to_alls, kColumns), IsEmpty());
  EXPECT_THAT(unlearned_costs(of_all_to_alls, kSlices), ElementsAre(HasSubstr(kPartialSums)));
  EXPECT_THAT(unlearned_costs(of_all_to_alls, kCopy), ElementsAre(HasSubstr(kAllReduce)));
  EXPECT_THAT(unlearned_costs(of_all_to_alls, kSlicesAndCopy),
              ElementsAre(HasSubstr(kAllReduce), HasSubstr(kPartialSums)));
}

/// The report of `plan` by the shipped cluster "pcie4", which has learned all-reduces, or by an
/// estimate.
std::string report_of(const ShardingPlan& plan, const char* communication) {
  PlanDocument document;
  document.task.batch_size = 4096;
  document.task.tables = {make_table("a", 1000, 16), make_table("b", 1000, 16)};
  document.task.topology.world_size = document.task.topology.local_world_size = 2;
  document.task.topology.memory_bytes.assign(2, std::int64_t{1} << 30);
  document.plan = plan;
  return pricing_report(
      price_plan(document, {.models = {"cpu-xeon-2core", communication}}, "plan.json"));
}

TEST(UnlearnedCosts, AreInTheReport) {
  EXPECT_THAT(report_of(kColumns, "pcie4"), Not(HasSubstr("has learned no")));
  EXPECT_THAT(report_of(kSlicesAndCopy, "pcie4"),
              HasSubstr(std::string("\npcie4: ") + kPartialSums + "\n"));
  EXPECT_THAT(report_of(kSlicesAndCopy, "pcie4"), Not(HasSubstr(kAllReduce)));
}

/// Which is said in other words.
TEST(UnlearnedCosts, OfAnEstimateEverythingIsEstimated) {
  EXPECT_THAT(report_of(kSlicesAndCopy, "analytic-a100-nvswitch"),
              Not(HasSubstr("has learned no")));
}

}  // namespace
}  // namespace neuroshard
