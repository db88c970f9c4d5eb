// The planners of a comparison by name: words for several, and planners with cuts of their own.
#include "neuroshard/paper/ablations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/baselines/planner_with_cuts.h"
#include "neuroshard/core/error.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

std::vector<std::string> names_of(const std::vector<std::string>& asked) {
  std::vector<std::string> names;
  for (const auto& planner : find_planners(asked)) names.emplace_back(planner->name());
  return names;
}

std::string refusal(const std::vector<std::string>& asked) {
  try {
    (void)find_planners(asked);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(FindPlanners, WordsStandForSeveral) {
  EXPECT_EQ(names_of({"all"}).size(), make_planners().size());
  EXPECT_EQ(names_of({"ablation"}).size(), make_ablations().size());
  const std::vector<std::string> more = names_of({"all", "without-grid", "neuroshard:none"});
  EXPECT_EQ(more.size(), make_planners().size() + 2);
  EXPECT_EQ(more.front(), "neuroshard");
  EXPECT_EQ(more.back(), "neuroshard:none");
}

TEST(FindPlanners, OneOfSeveralWordsIsThereOnce) {
  const std::vector<std::string> both = names_of({"all", "ablation"});
  // The search and beam-search are in both.
  EXPECT_EQ(both.size(), make_planners().size() + make_ablations().size() - 2);
  EXPECT_EQ(std::set<std::string>(both.begin(), both.end()).size(), both.size());
  EXPECT_EQ(names_of({"all", "random"}), names_of({"all"}));
  EXPECT_EQ(names_of({"random", "all"}).front(), "random");
}

TEST(FindPlanners, CutsBehindAColonAreThePlannersOwn) {
  // In one order, however they are written.
  EXPECT_THAT(
      names_of({"neuroshard:rows+columns", "torchrec-like:replicas", "without-beam:none"}),
      ElementsAre("neuroshard:columns+rows", "torchrec-like:replicas", "without-beam:none"));
  const auto planner = std::move(find_planners({"neuroshard:columns+rows"}).front());
  EXPECT_EQ(planner->cuts({}), (Cuts{true, true, false}));
}

TEST(FindPlanners, SayWhatIsWrong) {
  const std::string cuts =
      "algorithm: expected none, or some of columns, rows and replicas with + between them, behind "
      "\":\", got ";
  for (const char* name :
       {"neuroshard:", "neuroshard:all", "neuroshard:columns+", "neuroshard:rows+rows",
        "neuroshard:none+rows", "neuroshard:columns,rows"}) {
    EXPECT_EQ(refusal({name}), cuts + '"' + name + '"');
  }
  EXPECT_EQ(refusal({"random:rows"}),
            "algorithm: expected cuts of one that chooses among them, such as neuroshard, got "
            "\"random:rows\"");
  EXPECT_EQ(refusal({"beam-search:columns"}).substr(0, 27), "algorithm: expected cuts of");
  EXPECT_EQ(refusal({"random", "all", "random"}),
            "--algorithms: expected each once, got \"random\" again");
  EXPECT_EQ(refusal({"all", "all"}), "--algorithms: expected each once, got \"all\" again");
  EXPECT_EQ(refusal({"neuroshard:rows+columns", "neuroshard:columns+rows"}),
            "--algorithms: expected each once, got \"neuroshard:columns+rows\" again");
  EXPECT_EQ(refusal({"best:rows"}).substr(0, 40), "algorithm: expected one of neuroshard, b");
}

TEST(FindPlanners, PlansHaveTheCutsOfTheName) {
  const Simulator simulator = make_simulator(
      one_host_task({make_table("tiny", 4, 32), make_table("hot", 100'000, 32, 40.0)}, 4, 1 << 30));
  PlannerOptions options;
  options.steps = 100;
  options.cuts = {true, true, true};
  const auto plan = [&](const std::string& name) {
    return find_planners({name}).front()->plan(simulator, options).plan;
  };
  EXPECT_EQ(plan("neuroshard:none").shards.size(), 2u);
  const ShardingPlan columns = plan("neuroshard:columns");
  EXPECT_FALSE(columns.has_row_slices());
  EXPECT_TRUE(columns.replicated_tables.empty());
  EXPECT_TRUE(plan("torchrec-like:rows").replicated_tables.empty());
  EXPECT_FALSE(plan("torchrec-like:replicas").has_row_slices());
}

}  // namespace
}  // namespace neuroshard
