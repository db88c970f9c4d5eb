// A forced choice is kept to, and what cannot be chosen is refused.
#include "neuroshard/decide/why_not.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/report/explanation_report.h"
#include "tests/decide/decide_tasks.h"
#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing_decide::make_plan;
using testing_decide::make_task;
using testing_decide::make_uncut_plan;

WhyNot answered(const PlanDocument& document, const std::string& choice) {
  return why_not(document, parse_choice(choice, "--why-not"), {}, "plan.json");
}

TEST(ParseChoice, TakesTheTableBeforeTheLastColon) {
  const Choice rows = parse_choice("hot:one:rows=4", "--why-not");
  EXPECT_EQ(rows.table, "hot:one");
  EXPECT_EQ(rows.kind, Choice::Kind::rows);
  EXPECT_EQ(rows.number, 4);
  EXPECT_EQ(parse_choice("a:columns=2", "p").kind, Choice::Kind::columns);
  EXPECT_EQ(parse_choice("a:replicated", "p").kind, Choice::Kind::replicated);
  EXPECT_EQ(parse_choice("a:device=0", "p").kind, Choice::Kind::device);
  for (const char* text : {"", "a", ":rows=2", "a:", "a:rows", "a:rows=", "a:rows=x", "a:rows=-1",
                           "a:rows=2x", "a:replicated=2", "a:devices=1", "a:rows=99999999999"}) {
    EXPECT_THROW((void)parse_choice(text, "--why-not"), InputError) << text;
  }
}

TEST(WhyNot, PutsATableOnADevice) {
  const PlanDocument document = make_plan();
  for (const int device : {0, 3}) {
    const WhyNot answer = answered(document, "hot:one:device=" + std::to_string(device));
    EXPECT_THAT(answer.choice_shards, AllOf(Not(IsEmpty()), Each(Field(&Shard::device, device))));
    EXPECT_GE(answer.choice_ms, document.predicted->cost_ms * 0.9);
    EXPECT_EQ(answer.cost_ms, document.predicted->cost_ms);
  }
}

TEST(WhyNot, WarnsOfAChoiceThatTheModelWasNotTrainedOn) {
  const TemporaryFolder folder;
  const PlanDocument document = make_uncut_plan(folder.file("wide.safetensors"));
  const ExplainRequest request{{folder.file("wide.safetensors")}};
  const auto warnings = [&](const char* choice) {
    return why_not(document, parse_choice(choice, "--why-not"), request, "plan.json").warnings;
  };
  EXPECT_THAT(warnings("t5:columns=4"),
              Contains("with the choice: wide: columns of a piece: trained on 32 to 128, got 8 "
                       "(\"t5\")"));
  EXPECT_THAT(warnings("t5:device=0"), Not(Contains(HasSubstr("with the choice"))));
}

TEST(WhyNot, CutsColumns) {
  const PlanDocument document = make_plan();
  for (const int pieces : {1, 3, 5}) {
    const WhyNot answer = answered(document, "t5:columns=" + std::to_string(pieces));
    ASSERT_THAT(answer.choice_shards, SizeIs(pieces));
    std::int64_t next = 0;
    for (const Shard& shard : answer.choice_shards) {
      EXPECT_EQ(shard.column_offset, next);
      EXPECT_TRUE(shard.has_all_rows());
      next += shard.num_columns;
    }
    EXPECT_EQ(next, 96);
  }
}

TEST(WhyNot, CutsRows) {
  const PlanDocument document = make_plan();
  const WhyNot answer = answered(document, "hot:one:rows=3");
  std::set<std::int64_t> first_rows;
  for (const Shard& shard : answer.choice_shards) first_rows.insert(shard.row_offset);
  EXPECT_THAT(first_rows, SizeIs(3));
  EXPECT_THAT(answered(document, "hot:one:rows=1").choice_shards,
              AllOf(Not(IsEmpty()), Each(Field(&Shard::num_rows, 0))));
}

TEST(WhyNot, CopiesATable) {
  const WhyNot answer = answered(make_plan(), "t5:replicated");
  EXPECT_THAT(answer.choice_shards, IsEmpty());
  EXPECT_GT(answer.choice_slowest.all_reduce_ms, 0.0);
}

TEST(WhyNot, SaysWhetherAllDevicesAreEquallySlow) {
  const PlanDocument document = make_plan();
  WhyNot answer = answered(document, "t5:device=0");
  for (const bool equally_slow : {false, true}) {
    answer.equally_slow = equally_slow;
    answer.choice_equally_slow = !equally_slow;
    const Json json = why_not_json(answer, document.task);
    EXPECT_EQ(*json.find("equally_slow"), Json(equally_slow));
    EXPECT_EQ(*json.find("choice_equally_slow"), Json(!equally_slow));
  }
}

template <typename Error>
std::string message_of(const PlanDocument& document, const std::string& choice) {
  try {
    (void)answered(document, choice);
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error: " << choice;
  return "";
}

TEST(WhyNot, RefusesWhatCannotBe) {
  const PlanDocument document = make_plan();
  EXPECT_EQ(message_of<InputError>(document, "t5:device=4"),
            "--why-not: expected a device from 0 to 3, got 4");
  EXPECT_EQ(message_of<InputError>(document, "none:device=0"),
            "--why-not: expected the name of a table of the plan's task, got \"none\"");
  EXPECT_EQ(message_of<InputError>(document, "t5:columns=25"),
            "--why-not: expected at most 24 pieces of columns of table \"t5\", got 25");
  EXPECT_EQ(message_of<InputError>(document, "t5:rows=5"),
            "--why-not: expected at most 4 slices of rows of table \"t5\", got 5");
  EXPECT_THAT(message_of<InputError>(document, "t5:columns=0"), HasSubstr("at least one piece"));
  EXPECT_THAT(message_of<InputError>(document, "t5:rows=0"), HasSubstr("at least one slice"));
}

TEST(WhyNot, KeepsToTheTask) {
  Task task = make_task();
  task.tables[5].allow = {false, false, false};
  task.tables[6].devices = {1, 2};
  task.tables[7].same_device_as = "t8";
  const PlanDocument document = make_plan(task);
  EXPECT_EQ(message_of<InfeasibleError>(document, "t5:rows=2"),
            "table \"t5\": the task does not allow slices of its rows, as \"allow\" does not name "
            "\"rows\"");
  EXPECT_THAT(message_of<InfeasibleError>(document, "t5:columns=2"), HasSubstr("does not allow"));
  EXPECT_THAT(message_of<InfeasibleError>(document, "t5:replicated"), HasSubstr("does not allow"));
  EXPECT_THAT(message_of<InfeasibleError>(document, "t6:device=0"), HasSubstr("does not allow"));
  EXPECT_EQ(
      message_of<InfeasibleError>(document, "t6:replicated"),
      "table \"t6\": the task does not allow copies of it on every device, as it may only lie "
      "on devices 1 and 2");
  EXPECT_EQ(message_of<InfeasibleError>(document, "t7:rows=2"),
            "table \"t7\": the task does not allow slices of its rows, as it stays on one device "
            "with \"t8\"");
  // Tables that stay together go there together; others may be forced around them.
  EXPECT_THAT(answered(document, "t7:device=2").choice_shards,
              AllOf(Not(IsEmpty()), Each(Field(&Shard::device, 2))));
  EXPECT_THAT(answered(document, "t9:rows=2").choice_shards, Not(IsEmpty()));
  EXPECT_THAT(answered(document, "t9:columns=2").choice_shards, SizeIs(2));
}

TEST(WhyNot, RefusesWhatDoesNotFit) {
  Task task = make_task();
  task.tables[11].num_embeddings = 300'000;  // 110 MiB
  task.topology.memory_bytes.assign(4, std::int64_t{108} << 20);
  const PlanDocument document = make_plan(task);
  EXPECT_EQ(message_of<InfeasibleError>(document, "t11:replicated"),
            "no plan found that fits into memory with table \"t11\" whole on every device");
  for (const char* choice : {"t11:columns=1", "t11:device=2"}) {
    EXPECT_FALSE(message_of<InfeasibleError>(document, choice).empty());
  }
  // The slices of rows are as many as were asked for, or there is no plan; for some there is.
  int found = 0;
  for (const int slices : {1, 2, 3, 4}) {
    try {
      std::set<std::int64_t> first_rows;
      for (const Shard& shard :
           answered(document, "t11:rows=" + std::to_string(slices)).choice_shards) {
        first_rows.insert(shard.row_offset);
      }
      EXPECT_THAT(first_rows, SizeIs(slices));
      ++found;
    } catch (const InfeasibleError&) {
    }
  }
  EXPECT_GT(found, 0);
}

TEST(WhyNot, BeginsWithAPlanThatHasTheChoice) {
  PlanDocument document = make_plan();
  std::erase_if(document.plan.shards, [](const Shard& shard) { return shard.table == 5; });
  document.plan.shards.push_back({5, 0, 48, 0});
  document.plan.shards.push_back({5, 48, 48, 1});
  sort_shards(document.plan);
  for (const char* choice : {"t5:rows=1", "t5:columns=2"}) {
    const WhyNot answer = answered(document, choice);
    EXPECT_TRUE(answer.is_met_already) << choice;
    EXPECT_LE(answer.choice_ms, answer.cost_ms) << choice;
    EXPECT_THAT(why_not_text(answer, document.task), HasSubstr("The plan has table \"t5\" in "));
  }
  EXPECT_FALSE(answered(document, "t5:columns=3").is_met_already);
  EXPECT_FALSE(answered(document, "t5:replicated").is_met_already);
}

TEST(WhyNot, TakesMoreSlicesThanDevicesWhereThePlanHasThem) {
  PlanDocument document = make_plan();
  std::erase_if(document.plan.shards, [](const Shard& shard) { return shard.table == 5; });
  for (int slice = 0; slice < 5; ++slice) {
    document.plan.shards.push_back({5, 0, 96, slice % 4, slice * 24'000, 24'000});
  }
  sort_shards(document.plan);
  const WhyNot answer = answered(document, "t5:rows=5");
  EXPECT_TRUE(answer.is_met_already);
  EXPECT_LE(answer.choice_ms, answer.cost_ms);
  EXPECT_THAT(message_of<InputError>(document, "t5:rows=6"), HasSubstr("at most 4 slices"));
}

TEST(WhyNot, SaysThatSlicesShareADevice) {
  const PlanDocument document = make_plan();
  WhyNot answer = answered(document, "hot:one:rows=2");
  const std::string sentence = "Slices may share a device, as some of these do.\n";
  answer.choice_shards = {{2, 0, 96, 0, 0, 30'000}, {2, 0, 96, 1, 30'000, 30'000}};
  EXPECT_THAT(why_not_text(answer, document.task), Not(HasSubstr(sentence)));
  answer.choice_shards[1].device = 0;
  EXPECT_THAT(why_not_text(answer, document.task), HasSubstr(sentence));
}

TEST(WhyNot, SaysItInWords) {
  const PlanDocument document = make_plan();
  const std::string text = why_not_text(answered(document, "t5:replicated"), document.task);
  EXPECT_THAT(text, HasSubstr("With table \"t5\" whole on every device, the best plan that a short "
                              "search found is predicted to cost "));
  EXPECT_THAT(text, HasSubstr("    whole on every device\n"));
}

}  // namespace
}  // namespace neuroshard
