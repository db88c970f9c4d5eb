// Explanations agree with the simulator's prices, whatever the number of threads.
#include "neuroshard/decide/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/core/slowest_device.h"
#include "neuroshard/report/explanation_report.h"
#include "tests/decide/decide_tasks.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_decide::kEstimates;
using testing_decide::make_plan;
using testing_decide::make_task;
using testing_decide::make_uncut_plan;

Explanation explained(const PlanDocument& document, int num_threads = 2) {
  ExplainRequest request;
  request.num_threads = num_threads;
  request.seconds_per_planning = 600.0;  // the clock ends nothing, however slow a build is
  return explain_plan(document, request, "plan.json");
}

const Alternative& alternative(const Explanation& explanation, const std::string& change) {
  const auto found = std::find_if(
      explanation.alternatives.begin(), explanation.alternatives.end(),
      [&](const Alternative& other) { return other.change.find(change) != std::string::npos; });
  EXPECT_NE(found, explanation.alternatives.end()) << change;
  return *found;
}

TEST(ExplainPlan, IsOfThePlansOwnPrice) {
  const PlanDocument document = make_plan();
  const Explanation explanation = explained(document);
  EXPECT_EQ(explanation.cost_ms, document.predicted->cost_ms);
  EXPECT_EQ(explanation.slowest.compute_ms,
            document.predicted->devices[explanation.slowest_device].compute_ms);
  EXPECT_EQ(explanation.slowest_device, slowest_device(document.predicted->devices));
  EXPECT_GT(explanation.lower_bound_ms, 0.0);
  EXPECT_LE(explanation.lower_bound_ms, explanation.cost_ms);
}

TEST(ExplainPlan, WarnsOfAlternativesThatTheModelWasNotTrainedOn) {
  const TemporaryFolder folder;
  const PlanDocument document = make_uncut_plan(folder.file("wide.safetensors"));
  ExplainRequest request;
  request.models = {folder.file("wide.safetensors")};
  request.seconds_per_planning = 600.0;
  const Explanation explanation = explain_plan(document, request, "plan.json");
  EXPECT_THAT(explanation.warnings,
              Contains("table \"hot:one\" with 16 columns instead of 32: wide: embedding_dim: "
                       "trained on 32 to 128 columns, got 16 (\"hot:one\")"));
}

TEST(ExplainPlan, TablesAreThoseOfTheSlowestDeviceWithTheirShare) {
  const PlanDocument document = make_plan();
  const Explanation explanation = explained(document);
  const CostModels models = load_cost_models(kEstimates, document.task.topology);
  const Simulator simulator(document.task, models.compute, models.communication);
  std::int64_t pieces = 0;
  double last_ms = std::numeric_limits<double>::infinity();
  for (const TableOnDevice& part : explanation.tables) {
    EXPECT_EQ(part.device, explanation.slowest_device);
    EXPECT_LE(part.less_device_ms, last_ms);
    last_ms = part.less_device_ms;
    pieces += part.pieces;
    ShardingPlan without = document.plan;
    std::erase_if(without.shards, [&](const Shard& shard) {
      return shard.device == part.device && document.task.tables[shard.table].name == part.table;
    });
    const PlanCost cost = simulator.cost(without);
    EXPECT_DOUBLE_EQ(part.less_plan_ms, explanation.cost_ms - cost.cost_ms);
    EXPECT_NEAR(part.less_compute_ms,
                explanation.slowest.compute_ms - cost.devices[part.device].compute_ms, 1e-9);
  }
  EXPECT_EQ(pieces, std::count_if(document.plan.shards.begin(), document.plan.shards.end(),
                                  [&](const Shard& shard) {
                                    return shard.device == explanation.slowest_device;
                                  }));
}

TEST(ExplainPlan, AlternativesAreNoWorseThanWhatThePlanAllows) {
  const Explanation explanation = explained(make_plan());
  EXPECT_EQ(explanation.alternatives.front().change, "the same task planned again");
  for (const char* change : {"planned again", "twice the memory"}) {
    EXPECT_LE(alternative(explanation, change).cost_ms, explanation.cost_ms) << change;
  }
  EXPECT_LT(alternative(explanation, "links of twice the rate").cost_ms, explanation.cost_ms);
  EXPECT_LT(alternative(explanation, "one device more").cost_ms, explanation.cost_ms);
  EXPECT_TRUE(alternative(explanation, "columns instead of").found);
}

/// The search of a larger space may end at a plan that costs more than one of the smaller.
TEST(ExplainPlan, WhatTakesTheSamePlansNeverCostsMore) {
  for (const int seed : {26, 39}) {  // the second one's search does so with twice the memory
    Task task = make_task();
    task.tables.resize(3);
    for (int t = 0; t < 3; ++t) {
      task.tables[t].num_embeddings = 10'000 + 7'919 * ((seed * 3 + t) % 11);
      task.tables[t].embedding_dim = 16 << ((seed + t) % 4);
      task.tables[t].pooling_factor = 1.0 + (seed * 5 + t * 7) % 13;
    }
    task.topology.world_size = task.topology.local_world_size = 12;
    double bytes = 0.0;
    for (const Table& table : task.tables)
      bytes += 4.0 * static_cast<double>(table.num_embeddings * table.embedding_dim);
    task.topology.memory_bytes.assign(12, static_cast<std::int64_t>(bytes / 12 * 1.2));
    PlanRequest request;
    request.models = kEstimates;
    request.options.steps = 300;
    request.options.cuts = seed % 2 == 0 ? Cuts{true, false, false} : Cuts{};
    const Explanation explanation = explained(plan_task(task, request).document);
    const Alternative& same = explanation.alternatives.front();
    ASSERT_TRUE(same.found) << seed;
    int take_same = 0;
    for (const Alternative& other : explanation.alternatives) {
      if (other.change.starts_with("twice the memory") || other.change.starts_with("all cuts")) {
        EXPECT_LE(other.cost_ms, same.cost_ms) << other.change;
        ++take_same;
      }
    }
    EXPECT_EQ(take_same, seed % 2 == 0 ? 2 : 1) << seed;
  }
}

TEST(ExplainPlan, DoesNotDependOnTheNumberOfThreads) {
  const PlanDocument document = make_plan();
  EXPECT_EQ(to_document(explanation_json(explained(document, 1))),
            to_document(explanation_json(explained(document, 3))));
}

TEST(ExplainPlan, SaysWhichPlansTheBoundIsOf) {
  Explanation explanation = explained(make_plan());
  EXPECT_EQ(explanation.bound_scope.cuts, Cuts{}) << "those of the plan's search";
  explanation.bound_scope.cuts = kColumnsAlone;
  EXPECT_THAT(explanation_text(explanation),
              HasSubstr("No plan of whole tables and pieces of columns is predicted to cost "));
  explanation.bound_scope.unpriced.ordered = 2;
  explanation.bound_scope.has_other_slices = true;
  EXPECT_THAT(
      explanation_text(explanation),
      HasSubstr(" The bound leaves out the computation of 2 of 12 tables, whose row order is "
                "known, and takes all devices for one that is divided evenly, so there need "
                "not be a plan that cheap; plans with slices of rows of other sizes, as this "
                "one has, may cost less.\n"));
}

TEST(ExplainPlan, SaysItInWords) {
  const std::string text = explanation_text(explained(make_plan()));
  EXPECT_THAT(text, HasSubstr("It is limited by the "));
  EXPECT_THAT(text, HasSubstr("The tables that make device "));
  EXPECT_THAT(text, HasSubstr("No plan is predicted to cost less than "));
  EXPECT_THAT(text, HasSubstr("What would help most"));
  EXPECT_THAT(
      text,
      HasSubstr("\nmodels: analytic-a100-40gb (an estimate, not measured) for computation; "));
}

TEST(ExplainPlan, NamesNoSlowestOfEqualDevicesAndNoWaitingOfOne) {
  Task task = make_task();
  task.tables.resize(2);
  task.tables[1] = task.tables[0];
  task.tables[1].name = "twin";
  for (Table& table : task.tables) table.allow = {false, false, false};
  for (const int devices : {1, 2}) {
    task.topology.world_size = task.topology.local_world_size = devices;
    task.topology.memory_bytes.assign(devices, std::int64_t{1} << 30);
    PlanDocument document = make_plan(task);
    document.plan.shards = {{0, 0, 32, 0}, {1, 0, 32, devices - 1}};
    const Explanation explanation = explained(document);
    EXPECT_EQ(explanation.equally_slow, devices == 2);
    const std::string text = explanation_text(explanation);
    EXPECT_THAT(text, HasSubstr(devices == 2 ? "Its 2 devices take equally long."
                                             : "of its one device, which computes for "));
    for (const char* word : {"slowest", "waits", "-0.000"}) {
      EXPECT_THAT(text, testing::Not(HasSubstr(word))) << devices;
    }
    const TableExplanation twin = explain_table(document, "twin", {}, "plan.json");
    EXPECT_THAT(table_explanation_text(twin), testing::Not(HasSubstr("slowest"))) << devices;
    EXPECT_EQ(*table_explanation_json(twin).find("equally_slow"), Json(devices == 2));
  }
}

TEST(ExplainPlan, NamesCutsThatWereNotSearched) {
  PlanRequest request;
  request.models = kEstimates;
  request.options.steps = 1'000;
  request.options.cuts = kColumnsAlone;
  const PlanDocument document = plan_task(make_task(), request).document;
  EXPECT_TRUE(alternative(explained(document), "all cuts that the task allows").found);
}

TEST(ExplainPlan, OtherPlansMayMoveMoreThanThePlanPlaced) {
  // Small tables and large batches over a slow network: with a copy of each table on each of the
  // eight devices, seven times the bytes that the columns alone need.
  Task task;
  task.batch_size = 65'536;
  for (int i = 0; i < 8; ++i) {
    Table table;
    table.name = "t" + std::to_string(i);
    table.num_embeddings = 1'000;
    table.embedding_dim = 64;
    table.pooling_factor = 2.0;
    task.tables.push_back(table);
  }
  task.topology.world_size = 8;
  task.topology.local_world_size = 1;
  task.topology.interconnect = "ethernet-10g";
  task.topology.memory_bytes.assign(8, std::int64_t{1} << 30);
  PlanRequest request;
  request.models = {"analytic-a100-40gb", "analytic-ethernet-10g"};
  request.options.steps = 1'000;
  const PlanDocument all_cuts = plan_task(task, request).document;
  ASSERT_EQ(all_cuts.plan.replicated_tables.size(), 8u);
  request.options.cuts = kColumnsAlone;
  const Alternative other =
      alternative(explained(plan_task(task, request).document), "all cuts that the task allows");
  EXPECT_NEAR(other.cost_ms, all_cuts.predicted->cost_ms, 1e-9 * other.cost_ms);
}

TEST(ExplainPlan, AsksForMoreDevicesUpToTheMostThatThereMayBe) {
  Task task = make_task();
  task.tables.resize(2);
  task.allow = {false, false, false};
  PlanDocument document = make_plan(task);
  ExplainRequest request;
  request.seconds_per_planning = 1e-6;  // what is asked, whatever the answers
  const auto asks_for_more = [&](int devices, int per_host) {
    Topology& topology = document.task.topology;
    topology.world_size = devices;
    topology.local_world_size = per_host;
    topology.memory_bytes.assign(devices, std::int64_t{1} << 30);
    const Explanation explanation = explain_plan(document, request, "plan.json");
    return std::any_of(explanation.alternatives.begin(), explanation.alternatives.end(),
                       [](const Alternative& other) { return other.change.starts_with("one "); });
  };
  EXPECT_TRUE(asks_for_more(kMaxWorldSize - 1, kMaxWorldSize - 1));
  EXPECT_FALSE(asks_for_more(kMaxWorldSize, kMaxWorldSize));
  EXPECT_TRUE(asks_for_more(kMaxWorldSize - 4, 4));
  EXPECT_FALSE(asks_for_more(kMaxWorldSize, 4));
}

TEST(ExplainPlan, RefusesPlansThatAreNotValid) {
  PlanDocument document = make_plan();
  document.plan = {};
  EXPECT_THROW((void)explained(document), InfeasibleError);
}

TEST(ExplainTable, SaysWhereItLiesAndWhatItCosts) {
  const PlanDocument document = make_plan();
  const TableExplanation table = explain_table(document, "hot:one", {}, "plan.json");
  std::int64_t bytes = 0;
  double lookups = 0.0;
  for (const TableOnDevice& part : table.parts) {
    bytes += part.bytes;
    lookups += part.lookups;
  }
  EXPECT_EQ(bytes, 60'000 * 96 * 4);
  EXPECT_GE(lookups, 60.0 - 1e-9);
  EXPECT_GT(table.less_plan_ms, 0.0);
  EXPECT_THAT(table_explanation_text(table), HasSubstr("Table \"hot:one\" has 60000 rows"));
  try {
    (void)explain_table(document, "cold", {}, "plan.json");
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "plan.json: --table: expected the name of a table of the plan's task, got \"cold\"");
  }
}

TEST(ExplainTable, SaysWhatCopiesCost) {
  PlanDocument document = make_plan();
  std::erase_if(document.plan.shards, [](const Shard& shard) { return shard.table == 3; });
  document.plan.replicated_tables = {3};
  const TableExplanation table = explain_table(document, "t3", {}, "plan.json");
  EXPECT_TRUE(table.is_replicated);
  EXPECT_THAT(table.parts, IsEmpty());
  EXPECT_GT(table.all_reduce_ms, 0.0);
  EXPECT_THAT(table_explanation_text(table), HasSubstr("whole on every device"));
}

}  // namespace
}  // namespace neuroshard
