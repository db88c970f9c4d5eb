// A plan from an older one: its document says what moves, and its models and options are the older
// plan's unless others are asked for.
#include "neuroshard/plan/replan_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/report/moves_report.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Task twelve_tables() {
  Task task;
  task.batch_size = 4096;
  for (int i = 0; i < 12; ++i) {
    Table table;
    table.name = "t" + std::to_string(i);
    table.num_embeddings = 20'000 * (i + 1);
    table.embedding_dim = 32 * (1 + i % 3);
    table.pooling_factor = 1.0 + 7.0 * (i % 4);
    task.tables.push_back(table);
  }
  task.topology.world_size = task.topology.local_world_size = 4;
  task.topology.memory_bytes.assign(4, std::int64_t{1} << 30);
  return task;
}

PlanRequest replan_request(std::vector<std::string> models) {
  PlanRequest request;
  request.models = std::move(models);
  request.options.steps = 1'000;
  request.options.num_threads = 2;
  return request;
}

PlanDocument older_plan() {
  return plan_task(twelve_tables(),
                   replan_request({"analytic-a100-40gb", "analytic-a100-nvswitch"}))
      .document;
}

/// With a table gone, one new, one grown and one used more.
Task later_task() {
  Task task = twelve_tables();
  task.tables[3].pooling_factor = 60.0;
  task.tables[5].num_embeddings *= 2;
  task.tables[7].name = "new";
  return task;
}

TEST(ReplanTask, DocumentSaysWhatMoves) {
  const PlanDocument older = older_plan();
  const PlannedTask planned = replan_task(later_task(), older, 0.3, replan_request({}), "old.json");
  const PlanDocument& document = planned.document;
  EXPECT_THAT(violations(document.task, document.plan), IsEmpty());
  ASSERT_TRUE(document.moves.has_value());
  const PlanMoves& moves = *document.moves;
  EXPECT_EQ(moves.older_plan_sha256, plan_sha256(older));
  EXPECT_EQ(moves.max_move, 0.3);
  EXPECT_LE(static_cast<double>(moves.moved_bytes), 0.3 * static_cast<double>(moves.placed_bytes));
  std::int64_t sum = 0;
  for (const PlanMoves::Pair& pair : moves.pairs) {
    sum += pair.transfer.bytes;
    EXPECT_LE(*pair.ms, *moves.ms);
  }
  EXPECT_EQ(sum, moves.moved_bytes);
  EXPECT_EQ(document.model, older.model);  // the older plan's models, by name
  EXPECT_EQ(*document.search.find("algorithm")->text(), "replan");
  EXPECT_EQ(*parse_plan(plan_text(document), "plan.json").moves, moves);
  EXPECT_THAT(planning_report(planned), HasSubstr("that the older plan placed: "));
}

TEST(ReplanTask, MovesNothingForTheSameTaskWithoutAllowance) {
  const PlanDocument older = older_plan();
  const PlannedTask planned =
      replan_task(twelve_tables(), older, 0.0, replan_request({}), "old.json");
  EXPECT_EQ(planned.document.plan.shards, older.plan.shards);
  EXPECT_THAT(planned.document.moves->pairs, IsEmpty());
  EXPECT_EQ(planned.document.moves->moved_bytes, 0);
}

TEST(ReplanTask, SaysWhichTablesAreNotAsTheyWere) {
  const PlanDocument older = older_plan();
  const auto replanned = [&](const Task& task) {
    return replan_task(task, older, 1.0, replan_request({}), "old.json");
  };
  EXPECT_THAT(replanned(later_task()).notes,
              testing::Contains("tables compared with the older plan's: 1 new, 1 gone, 1 with "
                                "another number of rows"));
  const PlannedTask same = replanned(twelve_tables());
  EXPECT_THAT(same.notes, Not(testing::Contains(HasSubstr("compared with the older plan's"))));
  Task other = twelve_tables();
  for (Table& table : other.tables) table.name += "x";
  EXPECT_THAT(replanned(other).warnings,
              testing::Contains(HasSubstr("has none of the older plan's tables")));
  EXPECT_THAT(same.warnings, Not(testing::Contains(HasSubstr("older plan's tables"))));
}

TEST(ReplanTask, OtherModelsMayBeNamed) {
  const PlannedTask planned = replan_task(later_task(), older_plan(), 0.1,
                                          replan_request({"analytic-h100-sxm"}), "old.json");
  EXPECT_EQ(planned.models.compute->name(), "analytic-h100-sxm");
  EXPECT_EQ(planned.models.communication->name(), "analytic-a100-nvswitch");
}

template <typename Error>
std::string message_of(const PlanDocument& older, double max_move) {
  try {
    (void)replan_task(later_task(), older, max_move, replan_request({}), "old.json");
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

TEST(ReplanTask, MovesTakeAsLongAsTheModelsThatPriceThePlanSay) {
  const PlanDocument document =
      replan_task(later_task(), older_plan(), 0.3, replan_request({}), "old.json").document;
  ASSERT_TRUE(document.moves->ms);
  ASSERT_GT(*document.moves->ms, 0.0);
  const PlanMoves slower =
      *price_plan(document, {.models = {"analytic-pcie4"}}, "plan.json").document.moves;
  EXPECT_GT(*slower.ms, *document.moves->ms);
  ASSERT_EQ(slower.pairs.size(), document.moves->pairs.size());
  EXPECT_GT(*slower.pairs.front().ms, *document.moves->pairs.front().ms);
  EXPECT_EQ(slower.pairs.front().transfer, document.moves->pairs.front().transfer);
  EXPECT_EQ(slower.moved_bytes, document.moves->moved_bytes);
}

TEST(ReplanTask, KeepsToTheClockAndTheLimit) {
  const PlanDocument older = older_plan();
  PlanRequest request = replan_request({});
  request.options.steps = 1'000'000'000;
  request.options.time_limit_seconds = 0.3;
  request.options.stop_by_clock = true;
  const PlannedTask planned = replan_task(later_task(), older, 0.1, request, "old.json");
  EXPECT_TRUE(planned.stats.stopped_by_clock);
  EXPECT_THAT(violations(planned.document.task, planned.document.plan), IsEmpty());
  const PlanMoves& moves = *planned.document.moves;
  EXPECT_LE(static_cast<double>(moves.moved_bytes), 0.1 * static_cast<double>(moves.placed_bytes));

  request.options.time_limit_seconds = 1e-6;
  try {
    (void)replan_task(later_task(), older, 0.1, request, "old.json");
    FAIL() << "expected an InfeasibleError";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(), "no plan found within 0.001 ms");
  }
}

TEST(ReplanTask, RefusesWhatItCannotStartFrom) {
  PlanDocument older = older_plan();
  EXPECT_EQ(message_of<InputError>(older, 1.5), "max_move: expected a share from 0 to 1, got 1.5");
  older.plan.shards.pop_back();
  EXPECT_THAT(message_of<InfeasibleError>(older, 0.1), HasSubstr("old.json: not valid: table "));
}

TEST(ReplanTask, RefusesOptionsOutOfRange) {
  const PlanDocument older = older_plan();
  PlanRequest request = replan_request({});
  request.options.stop_by_clock = true;
  request.options.time_limit_seconds = -1.0;
  EXPECT_THROW((void)replan_task(later_task(), older, 0.1, request, "old.json"), InputError);
}

TEST(ReplanTask, IsNotMadeAgainWithoutTheOlderPlan) {
  const PlannedTask planned = replan_task(later_task(), older_plan(), 0.1, replan_request({}), "o");
  try {
    (void)plan_like(planned.document, {}, "plan.json");
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("plan.json: moves: expected a plan that was made from its "
                                        "task alone"));
  }
}

TEST(ReplanTask, TakesTheOlderPlansOptions) {
  PlanRequest request = replan_request({"analytic-a100-40gb", "analytic-a100-nvswitch"});
  request.options.cuts = kColumnsAlone;
  request.options.pessimism = 0.25;
  const PlanDocument older = plan_task(twelve_tables(), request).document;
  EXPECT_EQ(options_of_older(older).cuts, kColumnsAlone);
  EXPECT_EQ(options_of_older(older).pessimism, 0.25);
  PlanDocument of_others = older;
  of_others.search = Json::Object{};
  EXPECT_EQ(options_of_older(of_others), PlannerOptions{});
  of_others.search = Json::Object{{"options", "fast"}};
  EXPECT_EQ(options_of_older(of_others), PlannerOptions{});
  of_others.search = Json::Object{
      {"options",
       Json::Object{{"beam", 3}, {"cuts", "all"}, {"pessimism", 0.25}, {"least_gain", -7.0}}}};
  PlannerOptions expected;
  expected.cuts = kColumnsAlone;
  expected.pessimism = 0.25;
  EXPECT_EQ(options_of_older(of_others), expected);
}

TEST(ParseShare, TakesPercentagesAndFractions) {
  EXPECT_DOUBLE_EQ(parse_share("10%", "--max-move"), 0.1);
  EXPECT_DOUBLE_EQ(parse_share("0.25", "--max-move"), 0.25);
  EXPECT_DOUBLE_EQ(parse_share("0", "--max-move"), 0.0);
  for (const char* text : {"", "%", "10 %", "101%", "-1%", "1.5", "nan", "ten", "1e999"}) {
    EXPECT_THROW((void)parse_share(text, "--max-move"), InputError) << text;
  }
}

TEST(MovesText, NamesThePairsOfMostBytes) {
  PlanMoves moves;
  moves.max_move = 0.1;
  moves.placed_bytes = 1000 << 20;
  moves.moved_bytes = 60 << 20;
  moves.ms = 5.0;
  moves.pairs = {{{0, 1, 10 << 20}, 1.0}, {{1, 0, 50 << 20}, 5.0}};
  const std::string text = moves_text(moves, 1);
  EXPECT_THAT(text,
              HasSubstr("moves 60.00 MiB of the 1000.00 MiB that the older plan placed: 6.0%, "
                        "of 10% allowed; at the links' rates that takes 5.0 ms\n"));
  EXPECT_THAT(text, HasSubstr("(1 pair of fewer bytes not shown)"));
  EXPECT_THAT(text, Not(HasSubstr("10.00 MiB")));
}

}  // namespace
}  // namespace neuroshard
