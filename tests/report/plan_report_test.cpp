// Reports of plans: the slowest device is marked, omissions are mentioned, cuts are listed.
#include "neuroshard/report/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_tasks::make_table;
using testing_tasks::make_topology;

Task two_tables(int num_devices) {
  Task task;
  task.batch_size = 64;
  task.tables = {make_table("user", 256, 16), make_table("item", 256, 8)};
  task.topology = make_topology(num_devices, num_devices, 32 << 10);
  return task;
}

PlanCost costs(const std::vector<double>& compute_ms) {
  PlanCost cost;
  for (const double ms : compute_ms) {
    cost.devices.push_back({ms, 0.25, 0.5, 0, 4});
    cost.cost_ms = std::max(cost.cost_ms, cost.devices.back().total_ms());
  }
  return cost;
}

TEST(PlanTable, ShowsEveryDeviceAndMarksTheSlowest) {
  const ShardingPlan plan{{{0, 0, 8, 0}, {0, 8, 8, 1}, {1, 0, 8, 1}}};
  EXPECT_EQ(plan_table(two_tables(2), plan, costs({1.0, 2.0})),
            "device  pieces  columns           memory  compute ms  forward ms  backward ms  "
            "total ms\n"
            "     0       1        4   8.00 KiB (25%)       1.000       0.250        0.500     "
            "1.750\n"
            "     1       2        4  16.00 KiB (50%)       2.000       0.250        0.500     "
            "2.750  <- slowest\n");
}

TEST(PlanTable, OfEquallySlowDevicesMarksTheOneThatTheOthersWaitFor) {
  const ShardingPlan plan{{{0, 0, 8, 0}, {0, 8, 8, 1}, {1, 0, 8, 2}}};
  PlanCost cost = costs({1.0, 2.0, 2.0});
  cost.devices[0].forward_comm_ms = 1.25;  // it waits
  cost.devices[2].forward_comm_ms += 1e-15;
  const std::string text = plan_table(two_tables(3), plan, cost);
  EXPECT_EQ(text.find("slowest"), text.rfind("slowest"));
  EXPECT_THAT(text,
              HasSubstr("     1       1        4  8.00 KiB (25%)       2.000       0.250        "
                        "0.500     2.750  <- slowest\n"));
}

TEST(PlanTable, OfDevicesThatAreAllAlikeMarksNone) {
  const ShardingPlan plan{{{0, 0, 8, 0}, {0, 8, 8, 1}, {1, 0, 8, 2}}};
  const std::string text = plan_table(two_tables(3), plan, costs({1.0, 1.0, 1.0 + 1e-15}));
  EXPECT_THAT(text, Not(HasSubstr("slowest")));
  EXPECT_THAT(text, testing::EndsWith("1.750\nthe 3 devices take equally long\n"));
  EXPECT_THAT(plan_table(two_tables(3), plan, costs({1.0, 1.0, 1.0}), 2),
              testing::EndsWith("(1 other device not shown)\nthe 3 devices take equally long\n"));
  EXPECT_THAT(plan_table(two_tables(1), {{{0, 0, 16, 0}, {1, 0, 8, 0}}}, costs({1.0})),
              testing::EndsWith("1.750  <- slowest\n"));
}

TEST(PlanTable, LeavesOutFastDevicesAndSaysSo) {
  const ShardingPlan plan{{{0, 0, 16, 3}, {1, 0, 8, 1}}};
  const std::string text = plan_table(two_tables(4), plan, costs({1.0, 5.0, 2.0, 7.0}), 2);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_THAT(text, HasSubstr("5.750"));
  EXPECT_THAT(text, HasSubstr("7.750  <- slowest"));
  EXPECT_THAT(text, Not(HasSubstr("2.750")));
  EXPECT_THAT(text, testing::EndsWith("(2 faster devices not shown)\n"));
  EXPECT_LT(text.find("5.750"), text.find("7.750"));  // by number, not by time
}

TEST(DisagreementText, NamesTheDeviceWhereMembersAreFurthestApart) {
  EXPECT_EQ(disagreement_text(4, {{1.0, 1.0}, {9.9, 10.1}, {99.5, 100.5}}),
            "the 4 networks of the computation model agree within 2.0% (device 1: 9.900 to 10.100 "
            "ms)\n");
  EXPECT_EQ(disagreement_text(4, {{1.0, 1.0}, {9.5, 10.5}, {99.0, 101.0}}),
            "the 4 networks of the computation model disagree by up to 10.0% (device 1: 9.500 to "
            "10.500 ms)\n");
  EXPECT_EQ(disagreement_text(1, {{1.0, 1.0}}), "");
}

TEST(LowerBoundText, IsNoPromise) {
  EXPECT_EQ(lower_bound_text(14.67, 24.089, {}),
            "lower bound: 14.670 ms, 39.1% below this plan; it takes all devices for one that is "
            "divided evenly, so there need not be a plan that cheap\n");
  EXPECT_EQ(lower_bound_text(0.0, 24.0, {}), "");
  EXPECT_THAT(lower_bound_text(14.67, 24.089, {.cuts = kColumnsAlone}),
              testing::StartsWith("lower bound of plans of whole tables and pieces of columns: "));
  EXPECT_EQ(plans_of_cuts({.columns = false, .rows = false, .replicas = false}),
            " of whole tables");
  EXPECT_EQ(plans_of_cuts({.columns = true, .rows = true, .replicas = false}),
            " of whole tables, pieces of columns and slices of rows");
}

TEST(LowerBoundText, SaysWhatIsLeftOut) {
  BoundScope scope{.num_tables = 60, .unpriced = {.ordered = 3, .others = 0}};
  EXPECT_EQ(
      lower_bound_text(10.0, 20.0, scope),
      "lower bound: 10.000 ms, 50.0% below this plan; it leaves out the computation of 3 of 60 "
      "tables, whose row order is known, and takes all devices for one that is divided evenly, "
      "so there need not be a plan that cheap\n");
  scope.unpriced = {.ordered = 0, .others = 40};
  EXPECT_EQ(left_out_of_bound(scope),
            "the computation of 40 of 60 tables, too wide or too many to try all cuts");
  scope.unpriced = {.ordered = 3, .others = 40};
  EXPECT_EQ(left_out_of_bound(scope),
            "the computation of 3 of 60 tables, whose row order is known, and of 40 more, too wide "
            "or too many to try all cuts");
  scope.unpriced = {};
  scope.has_other_slices = true;
  EXPECT_EQ(lower_bound_text(10.0, 20.0, scope),
            "lower bound: 10.000 ms, 50.0% below this plan; it takes all devices for one that is "
            "divided evenly, so there need not be a plan that cheap; plans with slices of rows of "
            "other sizes, as this one has, may cost less\n");
}

TEST(CutsText, SpellsOutTheWidths) {
  const Task task = two_tables(2);
  EXPECT_EQ(cuts_text(task, {{{0, 0, 16, 0}, {1, 0, 8, 1}}}), "no table is cut\n");
  EXPECT_EQ(cuts_text(task, {{{0, 0, 12, 0}, {0, 12, 4, 1}, {1, 0, 8, 1}}}),
            "1 of 2 tables is cut:\n  user: 16 columns = 12 + 4\n");
}

TEST(CutsText, LeavesOutTheRestAndSaysSo) {
  const Task task = two_tables(2);
  EXPECT_EQ(cuts_text(task, {{{0, 0, 8, 0}, {0, 8, 8, 1}, {1, 0, 4, 1}, {1, 4, 4, 0}}}, 1),
            "2 of 2 tables are cut:\n  user: 16 columns = 8 + 8\n  ... and 1 more\n");
}

TEST(OutcomesTable, ComparesWithTheFirst) {
  EXPECT_EQ(outcomes_table({{"neuroshard", true, 2.0, 1500.0, ""},
                            {"random", true, 5.0, 0.25, ""},
                            {"greedy", false, 0.0, 1.0, "no room"}}),
            "algorithm   cost ms  relative    time\n"
            "neuroshard    2.000     1.00x  1.50 s\n"
            "random        5.000     2.50x  0.2 ms\n"
            "greedy         none            1.0 ms  no room\n");
}

TEST(OutcomesTable, WithoutAFirstPlanNothingIsRelative) {
  const std::string text = outcomes_table({{"a", false, 0.0, 1.0, "x"}, {"b", true, 3.0, 1.0, ""}});
  EXPECT_THAT(text, HasSubstr("3.000"));
  EXPECT_THAT(text, Not(HasSubstr("x\n  ")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_EQ(outcomes_table({}), "algorithm  cost ms  relative  time\n");
}

}  // namespace
}  // namespace neuroshard
