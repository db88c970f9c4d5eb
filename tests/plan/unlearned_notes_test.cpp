// What a plan's report says of prices that no model has learned.
#include "neuroshard/report/planning_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "neuroshard/cost/communication/neural_communication_model.h"
#include "tests/cost/arbitrary_communication.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_networks::random_communication_network;
using testing_networks::two_clusters;
using testing_tasks::make_table;

constexpr const char* kAllReduce = "the all-reduce is priced by the links' rates alone";
constexpr const char* kPartialSums = "adding up partial sums is priced by the memory's rate alone";

/// The report of a plan by an estimate of the computation and, if `learned`, a network that knows
/// all-to-alls alone.
std::string report_of(ShardingPlan plan, bool learned) {
  PlanDocument document;
  document.task.batch_size = 4096;
  document.task.tables = {make_table("a", 1000, 16), make_table("b", 1000, 16)};
  document.task.topology.world_size = document.task.topology.local_world_size = 2;
  document.task.topology.memory_bytes.assign(2, std::int64_t{1} << 30);
  document.plan = std::move(plan);
  PricedPlan priced = price_plan(
      document, {.models = {"analytic-a100-40gb", "analytic-a100-nvswitch"}}, "plan.json");
  if (learned) {
    priced.models.communication = std::make_shared<NeuralCommunicationModel>(
        random_communication_network(1), two_clusters(), 0);
  }
  return pricing_report(priced);
}

const ShardingPlan kColumns{{{0, 0, 16, 0}, {1, 0, 16, 1}}};
const ShardingPlan kSlices{{{0, 0, 16, 0, 0, 500}, {0, 0, 16, 1, 500, 500}, {1, 0, 16, 1}}};
const ShardingPlan kCopy{{{0, 0, 16, 0}}, {1}};

TEST(PlanningReport, SaysWhatTheCommunicationModelHasNotLearned) {
  EXPECT_THAT(report_of(kColumns, true), Not(HasSubstr(kAllReduce)));
  EXPECT_THAT(report_of(kColumns, true), Not(HasSubstr(kPartialSums)));
  EXPECT_THAT(report_of(kSlices, true), HasSubstr(kPartialSums));
  EXPECT_THAT(report_of(kSlices, true), Not(HasSubstr(kAllReduce)));
  EXPECT_THAT(report_of(kCopy, true), HasSubstr(kAllReduce));
  EXPECT_THAT(report_of(kCopy, true), Not(HasSubstr(kPartialSums)));
}

/// Which it says in other words.
TEST(PlanningReport, OfAnEstimateEverythingIsEstimated) {
  EXPECT_THAT(report_of(kSlices, false), Not(HasSubstr(kPartialSums)));
  EXPECT_THAT(report_of(kCopy, false), Not(HasSubstr(kAllReduce)));
}

}  // namespace
}  // namespace neuroshard
