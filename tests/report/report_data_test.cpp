// What a report shows: shares of a device's time, look-ups of pieces, sentences, and which plans
// and evaluations go together.
#include "neuroshard/report/page/report_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "neuroshard/report/page/report_json.h"
#include "tests/cost/arbitrary_task.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// Table "user" in slices of a quarter and three quarters of its rows, "item" whole, "tiny" on
/// both.
NamedPlan slices_and_copies() {
  PlanDocument document;
  document.task.batch_size = 100;
  document.task.tables = {make_table("user", 400, 16, 10.0), make_table("item", 100, 8, 2.0),
                          make_table("tiny", 10, 4, 1.0)};
  document.task.topology = make_topology(2, 2, 64 << 10);
  document.plan.shards = {{0, 0, 16, 0, 0, 100}, {0, 0, 16, 1, 100, 300}, {1, 0, 8, 0}};
  document.plan.replicated_tables = {2};
  document.predicted = PlanCost{8.0, {{1.0, 3.5, 0.5, 0, 24, 0.25}, {6.0, 1.0, 0.75, 0, 16, 0.25}}};
  return {"plan.json", document};
}

const ReportPlan& only(const ReportData& data) { return data.plans.front(); }

TEST(ReportData, LookUpsFollowRowsColumnsAndCopies) {
  const ReportData data = report_data({slices_and_copies()});
  const std::vector<ReportPiece>& pieces = only(data).pieces;
  ASSERT_EQ(pieces.size(), 3u);
  // 100 samples x 10 look-ups x 16 columns x 4 bytes, in proportion to the rows.
  EXPECT_DOUBLE_EQ(pieces[0].looked_up_bytes, 16'000.0);
  EXPECT_DOUBLE_EQ(pieces[1].looked_up_bytes, 48'000.0);
  EXPECT_DOUBLE_EQ(pieces[2].looked_up_bytes, 6'400.0);
  EXPECT_EQ(pieces[0].memory_bytes, 100 * 16 * 4);
  // Each device looks up half of the batch in its copy.
  EXPECT_DOUBLE_EQ(only(data).devices[0].looked_up_bytes, 16'000.0 + 6'400.0 + 800.0);
  EXPECT_DOUBLE_EQ(only(data).devices[1].looked_up_bytes, 48'000.0 + 800.0);
  EXPECT_EQ(only(data).devices[0].num_pieces, 2);
  EXPECT_EQ(only(data).devices[1].memory_bytes, 300 * 16 * 4 + 10 * 4 * 4);
}

TEST(ReportData, SlicesByFrequencyHaveTheirShareOfTheLookUps) {
  NamedPlan plan = slices_and_copies();
  plan.document.task.tables[0].row_access = {{0.25, 0.9}, {1.0, 1.0}};
  const ReportData data = report_data({plan});
  EXPECT_NEAR(only(data).pieces[0].looked_up_bytes, 0.9 * 64'000.0, 64.0);
  EXPECT_NEAR(only(data).pieces[1].looked_up_bytes, 0.1 * 64'000.0, 64.0);
}

TEST(ReportData, WaitingIsUntilTheLastDeviceEnters) {
  const ReportData data = report_data({slices_and_copies()});
  // Device 0 enters after 1.75 ms, device 1 after 7 ms: but it spends 3.5 ms there in all.
  EXPECT_EQ(only(data).devices[0].waiting_ms, 3.5);
  EXPECT_EQ(only(data).devices[1].waiting_ms, 0.0);
}

RC_GTEST_PROP(ReportData, WaitingIsAPartOfForwardCommunication, ()) {
  const auto times = *rc::gen::nonEmpty(rc::gen::container<std::vector<DeviceCost>>(
      rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 100), rc::gen::inRange(0, 100),
                                  rc::gen::inRange(0, 100), rc::gen::inRange(0, 100)),
                   [](const std::tuple<int, int, int, int>& ms) {
                     DeviceCost cost;
                     cost.compute_ms = std::get<0>(ms);
                     cost.forward_comm_ms = std::get<1>(ms);
                     cost.backward_comm_ms = std::get<2>(ms);
                     cost.all_reduce_ms = std::get<3>(ms);
                     return cost;
                   })));
  const std::vector<double> waiting = waiting_ms(times);
  RC_ASSERT(waiting.size() == times.size());
  bool one_waits_for_nobody = false;
  for (std::size_t d = 0; d < times.size(); ++d) {
    RC_ASSERT(waiting[d] >= 0.0 && waiting[d] <= times[d].forward_comm_ms);
    one_waits_for_nobody |= waiting[d] == 0.0;
  }
  RC_ASSERT(one_waits_for_nobody);
}

TEST(ReportData, SaysWhichDeviceIsSlowestAndWhy) {
  EXPECT_THAT(
      only(report_data({slices_and_copies()})).words,
      ElementsAre(
          "Device 1 of 2 is the slowest: it takes 8.00 ms for an iteration, 75% of it computation.",
          "The plan costs what its slowest device takes: 75% is computation (6.00 ms), 12% is "
          "forward communication (1.00 ms), 9% is "
          "backward communication (0.750 ms).",
          "Waiting aside, the least busy device has 78% less to do. It differs most in "
          "computation: 6.00 ms, on the other devices 1.00 ms on average.",
          "The others wait for it: it is the last to enter the forward all-to-all, 7.00 ms after "
          "the start.",
          "Of its tables that are not on every device, it looks up the most bytes of user "
          "(98%)."));
}

TEST(ReportData, SaysHowFarTheLowerBoundIsAndForWhomADeviceWaits) {
  NamedPlan plan = slices_and_copies();
  plan.document.predicted->devices[0] = {1.0, 10.0, 0.5, 0, 24, 0.25};
  plan.document.predicted->cost_ms = 11.75;
  plan.document.search = Json::Object{{"lower_bound_ms", 10.0}, {"expected_ms", 12.25}};
  const std::vector<std::string> words = only(report_data({plan})).words;
  EXPECT_EQ(words[words.size() - 2],
            "Devices that are planned alike differ when they run, and the slowest decides: it is "
            "expected to take 12.25 ms.");
  EXPECT_THAT(words[0], testing::StartsWith("Device 0 of 2 is the slowest: it takes 11.75 ms"));
  EXPECT_EQ(
      words[3],
      "It waits 5.25 ms for device 1, which is the last to enter the forward all-to-all, 7.00 "
      "ms after the start.");
  EXPECT_EQ(
      words.back(),
      "By the same models no plan of whole tables, slices of rows and copies that fits into memory "
      "costs less than 10.00 ms: this one is at most 17.5% above the best of these, but plans with "
      "slices of rows of other sizes, as this one has, may cost less.");
  plan.document.plan.shards[0].num_rows = plan.document.plan.shards[1].row_offset = 200;
  plan.document.plan.shards[1].num_rows = 200;
  plan.document.search.set("options",
                           Json::Object{{"cuts", Json::Array{"columns", "rows", "replicas"}}});
  EXPECT_EQ(
      only(report_data({plan})).words.back(),
      "By the same models no plan that fits into memory costs less than 10.00 ms: this one is at "
      "most 17.5% above the best.");
  plan.document.task.tables[0].row_access = {{0.1, 0.5}, {1.0, 1.0}};
  EXPECT_EQ(
      only(report_data({plan})).words.back(),
      "By the same models no plan that fits into memory costs less than 10.00 ms: this one is at "
      "most 17.5% above the best. The bound leaves out the computation of 1 of 3 tables, whose row "
      "order is known.");
  plan.document.plan.shards = {{0, 0, 16, 0}, {1, 0, 8, 1}, {2, 0, 4, 0}};
  plan.document.plan.replicated_tables.clear();
  plan.document.search.set("options", Json::Object{{"cuts", Json::Array{"columns"}}});
  EXPECT_EQ(
      only(report_data({plan})).words.back(),
      "By the same models no plan of whole tables and pieces of columns that fits into memory "
      "costs less than 10.00 ms: this one is at most 17.5% above the best of these.");
}

TEST(ReportData, NamesNoDeviceWhereAllAreEquallySlow) {
  NamedPlan plan = slices_and_copies();
  plan.document.predicted = PlanCost{8.0, {{6.0, 1.0, 0.75, 0, 24, 0.25}, {6.0, 1.0, 0.75}}};
  plan.document.predicted->devices[1].all_reduce_ms = 0.25;
  const ReportData data = report_data({plan});
  EXPECT_THAT(
      only(data).words,
      ElementsAre(
          "Each of the 2 devices takes 8.00 ms for an iteration.",
          "On the first of them, 75% is computation (6.00 ms), 12% is forward communication "
          "(1.00 ms), 9% is backward communication (0.750 ms).",
          "The devices are balanced: waiting aside, the least busy one has 0.0% less to "
          "do."));
  EXPECT_EQ(to_json(data).find("plans")->array()->front().find("slowest"), nullptr);
}

TEST(ReportData, OfDevicesThatEndTogetherTheLastToEnterIsTheSlowest) {
  NamedPlan plan = slices_and_copies();
  plan.document.predicted->devices[0] = {1.0, 6.25, 0.5, 0, 24, 0.25};
  const ReportData data = report_data({plan});
  EXPECT_THAT(only(data).words[0], testing::StartsWith("Device 1 of 2 is the slowest: it takes 8"));
  EXPECT_THAT(only(data).words[3], testing::StartsWith("The others wait for it: "));
  EXPECT_EQ(*to_json(data).find("plans")->array()->front().find("slowest"), Json(1));
}

TEST(ReportData, NoDeviceWaitsForOneThatEntersLaterByRoundingAlone) {
  NamedPlan plan = slices_and_copies();
  // It ends earlier, and enters after 7 ms as the slowest does.
  plan.document.predicted->devices[0] = {6.25 + 1e-12, 0.5, 0.5, 0, 24, 0.25};
  const std::vector<std::string> words = only(report_data({plan})).words;
  EXPECT_THAT(words[0], testing::StartsWith("Device 1 of 2 is the slowest: it takes 8"));
  EXPECT_THAT(words[3], testing::StartsWith("The others wait for it: "));
}

TEST(ReportData, OfManySmallTablesNoneHasMostOfTheBytes) {
  PlanDocument document;
  document.task.batch_size = 1;
  document.task.topology = make_topology(1, 1, 1 << 20);
  for (int t = 0; t < 20; ++t) {
    document.task.tables.push_back(make_table("t" + std::to_string(t), 10, 4, t == 7 ? 2.0 : 1.0));
    document.plan.shards.push_back({t, 0, 4, 0});
  }
  document.predicted = PlanCost{2.0, {{2.0, 0.0, 0.0, 3200, 80}}};
  EXPECT_EQ(only(report_data({{"p", document}})).words.back(),
            "Of its tables, it looks up the most bytes of t7 (10%).");
}

TEST(ReportData, OfOneDeviceAndOfPlansWithoutPrediction) {
  NamedPlan plan = slices_and_copies();
  plan.document.predicted.reset();
  EXPECT_THAT(only(report_data({plan})).words,
              ElementsAre("This plan has no predicted cost: neuroshard price predicts it."));
  PlanDocument document;
  document.task.batch_size = 1;
  document.task.tables = {make_table("a", 1, 4)};
  document.task.topology = make_topology(1, 1, 1 << 10);
  document.plan.shards = {{0, 0, 4, 0}};
  document.predicted = PlanCost{2.0, {{2.0, 0.0, 0.0, 16, 4}}};
  EXPECT_THAT(
      only(report_data({{"p", document}})).words,
      ElementsAre("The only device takes 2.00 ms for an iteration, 100% of it computation.",
                  "The plan costs what its slowest device takes: 100% is computation (2.00 ms).",
                  "Of its tables, it looks up the most bytes of a (100%)."));
  document.predicted = PlanCost{0.0, {{0.0, 0.0, 0.0, 16, 4}}};
  EXPECT_THAT(only(report_data({{"p", document}})).words,
              ElementsAre("The only device takes 0.000 ms for an iteration."));
}

TEST(ReportData, TheSearchsHistoryIsTheBestSoFarOverTheWork) {
  NamedPlan plan = slices_and_copies();
  plan.document.search = parse_json(
      R"({"statistics": {"levels": [{"best_cost_ms": null, "plans_priced": 5},
                                    {"best_cost_ms": 9.0, "plans_priced": 10},
                                    {"best_cost_ms": 10.0, "plans_priced": 10}],
                         "rounds": [{"cost_before_ms": 9.5, "cost_after_ms": 9,
                                     "chains": [{"plans_priced": 100}, {"plans_priced": 50}]}]}})",
      "search");
  const SearchHistory history = only(report_data({plan})).history;
  ASSERT_EQ(history.levels.size(), 2u);
  EXPECT_EQ(history.levels[0].plans_priced, 15);
  EXPECT_EQ(history.levels[1].plans_priced, 25);
  EXPECT_EQ(history.levels[1].best_cost_ms, 9.0);
  ASSERT_EQ(history.rounds.size(), 2u);
  EXPECT_EQ(history.rounds[0].plans_priced, 25);
  EXPECT_EQ(history.rounds[0].best_cost_ms, 9.5);
  EXPECT_EQ(history.rounds[1].plans_priced, 175);
  EXPECT_EQ(history.rounds[1].best_cost_ms, 9.0);
}

TEST(ReportData, ASearchOfAnyContentIsTaken) {
  NamedPlan plan = slices_and_copies();
  for (const char* search :
       {R"({"statistics": 3})", R"({"statistics": {"levels": {}, "rounds": [null, 7, []]}})",
        R"({"statistics": {"levels": [{"best_cost_ms": "9", "plans_priced": -1e300}, null]}})",
        R"({"lower_bound_ms": "x", "expected_ms": [], "baselines": 7})",
        R"({"statistics": {"rounds": [{"cost_before_ms": 1.0, "chains": 8}]}})"}) {
    plan.document.search = parse_json(search, "search");
    EXPECT_THAT(only(report_data({plan})).words, testing::SizeIs(5)) << search;
  }
}

TEST(ReportData, PlansOfOtherTasksAreRefused) {
  const NamedPlan plan = slices_and_copies();
  NamedPlan other = plan;
  other.name = "other.json";
  EXPECT_EQ(report_data({plan, other}).plans.size(), 2u);
  other.document.task.tables[1].num_embeddings = 200;
  EXPECT_EQ(input_error([&] {
              (void)report_data({plan, other});
            }),
            "other.json: task.tables[1].num_embeddings: expected 100 as in plan.json, got 200");
  other = plan;
  other.document.task.topology = make_topology(2, 1, 64 << 10);
  EXPECT_THAT(input_error([&] {
                (void)report_data({plan, other});
              }),
              HasSubstr("task.topology.local_world_size: expected 2 as in plan.json, got 1"));
}

TEST(ReportData, PlansThatDoNotFitTheirTaskAreRefused) {
  NamedPlan plan = slices_and_copies();
  plan.document.plan.shards.pop_back();
  const auto refusal = [&]() -> std::string {
    try {
      (void)report_data({plan});
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    ADD_FAILURE() << "expected an InfeasibleError";
    return "";
  };
  EXPECT_EQ(refusal(), "plan.json: not valid: table \"item\": columns 0 to 7 are on no device");
  plan.document.plan = {};
  EXPECT_THAT(refusal(),
              HasSubstr("are on no device (and 2 other violations, which neuroshard check lists)"));
  EXPECT_EQ(input_error([] { (void)report_data({}); }),
            "plans: expected at least one plan, got none");
}

TEST(ReportData, EvaluationsGoToTheirPlan) {
  const NamedPlan plan = slices_and_copies();
  NamedPlan moved = plan;
  moved.name = "moved.json";
  moved.document.plan.shards[2].device = 1;
  EvaluationRecord record;
  record.predicted = record.actual = *plan.document.predicted;
  record.plan_sha256 = plan_sha256(moved.document);
  const NamedEvaluation evaluation{"e.json", record};
  const ReportData data = report_data({plan, moved}, {evaluation});
  EXPECT_THAT(data.plans[0].evaluations, testing::IsEmpty());
  EXPECT_THAT(data.plans[1].evaluations, testing::SizeIs(1));
  EXPECT_EQ(input_error([&] { (void)report_data({plan}, {evaluation}); }),
            "e.json: expected an evaluation of plan.json, got that of another plan");
}

TEST(ReportJson, HasThePartsOfEveryDevicesTime) {
  const Json json = to_json(report_data({slices_and_copies()}));
  const Json& device = json.find("plans")->array()->front().find("devices")->array()->front();
  EXPECT_EQ(*device.find("waiting_ms"), Json(3.5));
  EXPECT_EQ(*device.find("forward_comm_ms"), Json(0.0));
  EXPECT_EQ(*device.find("total_ms"), Json(5.25));
  const Json& piece = json.find("plans")->array()->front().find("pieces")->array()->at(1);
  EXPECT_EQ(to_line(piece), "[0, 100, 300, 0, 16, 1, 19200, 48000.0]");
}

TEST(ReportJson, SaysWhoPredictedAnEvaluation) {
  const NamedPlan plan = slices_and_copies();
  EvaluationRecord record;
  record.predicted = record.actual = *plan.document.predicted;
  record.plan_sha256 = plan_sha256(plan.document);
  record.model = Json::Object{{"compute", Json::Object{{"name", "mine"}}}};
  record.warnings = {"measured on another processor"};
  const Json json = to_json(report_data({plan}, {{"e.json", record}}));
  const Json& evaluation =
      json.find("plans")->array()->front().find("evaluations")->array()->front();
  EXPECT_EQ(to_line(*evaluation.find("model")), "{\"compute\": {\"name\": \"mine\"}}");
  EXPECT_EQ(to_line(*evaluation.find("warnings")), "[\"measured on another processor\"]");
}

}  // namespace
}  // namespace neuroshard
