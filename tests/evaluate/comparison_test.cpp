// Comparisons: which planners are compared on which tasks, means and wins by hand, and planners
// that cheat.
#include "neuroshard/evaluate/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "neuroshard/core/error.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "tests/collect/tiny_collection.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

ComparisonEntry solved(const char* task, const char* algorithm, double predicted, double wall,
                       std::optional<double> measured = std::nullopt) {
  ComparisonEntry entry;
  entry.task = task;
  entry.algorithm = algorithm;
  entry.found = true;
  entry.predicted_ms = predicted;
  entry.wall_ms = wall;
  entry.measured_ms = measured;
  if (measured) entry.measured_compute_ms = *measured / 2.0;
  return entry;
}

ComparisonEntry unsolved(const char* task, const char* algorithm, double wall) {
  ComparisonEntry entry;
  entry.task = task;
  entry.algorithm = algorithm;
  entry.reason = "no room";
  entry.wall_ms = wall;
  return entry;
}

TEST(Summarize, MeansAreOverTheTasksThatAllSolved) {
  const std::vector<ComparisonSummary> summaries =
      summarize({solved("1", "search", 4.0, 10.0), solved("1", "greedy", 6.0, 1.0),
                 solved("2", "search", 100.0, 30.0), unsolved("2", "greedy", 3.0),
                 solved("3", "search", 8.0, 20.0), solved("3", "greedy", 7.0, 2.0)});
  ASSERT_EQ(summaries.size(), 2u);
  const ComparisonSummary& search = summaries[0];
  const ComparisonSummary& greedy = summaries[1];
  EXPECT_EQ(search.algorithm, "search");
  EXPECT_EQ(greedy.algorithm, "greedy");
  for (const ComparisonSummary& summary : summaries) {
    EXPECT_EQ(summary.tasks, 3);
    EXPECT_EQ(summary.common, 2);
    EXPECT_FALSE(summary.mean_measured_ms.has_value());
    EXPECT_FALSE(summary.measured_wins.has_value());
  }
  EXPECT_EQ(search.solved, 3);
  EXPECT_EQ(greedy.solved, 2);
  EXPECT_EQ(search.mean_predicted_ms, 6.0);
  EXPECT_EQ(greedy.mean_predicted_ms, 6.5);
  EXPECT_DOUBLE_EQ(search.mean_wall_ms, 20.0);  // over all tasks
  EXPECT_DOUBLE_EQ(greedy.mean_wall_ms, 2.0);
  EXPECT_EQ(search.wins, 2);  // the unsolved task is won too
  EXPECT_EQ(greedy.wins, 1);
}

TEST(Summarize, ATieIsAWinForBoth) {
  const auto summaries = summarize({solved("1", "a", 5.0, 1.0), solved("1", "b", 5.0, 1.0)});
  EXPECT_EQ(summaries[0].wins, 1);
  EXPECT_EQ(summaries[1].wins, 1);
}

TEST(Summarize, CutsAreThoseOfAllTasks) {
  ComparisonEntry first = solved("1", "a", 5.0, 1.0);
  first.cuts = Cuts{true, false, false};
  ComparisonEntry second = unsolved("2", "a", 1.0);
  second.cuts = Cuts{false, false, true};
  // A journal of a version that knew columns alone does not say.
  const auto summaries = summarize({first, solved("1", "b", 5.0, 1.0), second});
  EXPECT_EQ(summaries[0].cuts, (Cuts{true, false, true}));
  EXPECT_EQ(summaries[1].cuts, std::nullopt);
}

TEST(Summarize, MeasuredCostsHaveTheirOwnWins) {
  const auto summaries =
      summarize({solved("1", "a", 5.0, 1.0, 8.0), solved("1", "b", 6.0, 1.0, 7.0),
                 solved("2", "a", 5.0, 1.0, 4.0), solved("2", "b", 6.0, 1.0, 9.0),
                 solved("3", "a", 5.0, 1.0, 2.0), unsolved("3", "b", 1.0)});
  EXPECT_EQ(summaries[0].wins, 3);
  EXPECT_EQ(summaries[1].wins, 0);
  EXPECT_EQ(summaries[0].measured_wins, 2);
  EXPECT_EQ(summaries[1].measured_wins, 1);
  EXPECT_DOUBLE_EQ(*summaries[0].mean_measured_ms, 6.0);
  EXPECT_DOUBLE_EQ(*summaries[1].mean_measured_ms, 8.0);
  EXPECT_DOUBLE_EQ(*summaries[0].mean_measured_compute_ms, 3.0);
  EXPECT_EQ(summaries[0].common, 2);
}

TEST(Summarize, GapsAndRatiosAreOfTheirOwnTasks) {
  const std::vector<ComparisonEntry> entries{
      solved("1", "a", 5.0, 1.0, 10.0), solved("1", "b", 6.0, 1.0, 5.0),
      solved("2", "a", 3.0, 1.0, 2.0),  solved("2", "b", 6.0, 1.0, 4.0),
      solved("3", "a", 5.0, 1.0, 2.0),  unsolved("3", "b", 1.0)};
  auto summaries = summarize(entries, "b");
  EXPECT_DOUBLE_EQ(*summaries[0].mean_gap, (0.5 + 0.5 + 1.5) / 3.0);
  EXPECT_DOUBLE_EQ(*summaries[1].mean_gap, (0.2 + 0.5) / 2.0);
  EXPECT_DOUBLE_EQ(*summaries[0].mean_ratio, (2.0 + 0.5) / 2.0);
  EXPECT_DOUBLE_EQ(*summaries[0].worst_ratio, 2.0);
  EXPECT_DOUBLE_EQ(*summaries[1].worst_ratio, 1.0);
  summaries = summarize(entries, "c");
  EXPECT_FALSE(summaries[0].mean_ratio || summaries[0].worst_ratio);
  summaries = summarize({solved("1", "a", 5.0, 1.0), solved("1", "b", 4.0, 1.0)}, "b");
  EXPECT_DOUBLE_EQ(*summaries[0].mean_ratio, 1.25);  // of predicted costs
  EXPECT_FALSE(summaries[0].mean_gap);
}

TEST(Summarize, TheGapLessDriftIsOfThoseWithControls) {
  std::vector<ComparisonEntry> entries{solved("1", "a", 5.0, 1.0, 10.0),
                                       solved("2", "a", 3.0, 1.0, 2.0)};
  EXPECT_FALSE(summarize(entries)[0].mean_gap_less_drift);
  entries[0].less_drift_ms = 4.0;
  EXPECT_DOUBLE_EQ(*summarize(entries)[0].mean_gap_less_drift, 0.25);
  entries[1].less_drift_ms = 6.0;
  EXPECT_DOUBLE_EQ(*summarize(entries)[0].mean_gap_less_drift, (0.25 + 0.5) / 2.0);
}

TEST(Summarize, TheExpectedGapIsOfTasksWhoseCostWasExpected) {
  std::vector<ComparisonEntry> entries{solved("1", "a", 5.0, 1.0, 10.0),
                                       solved("2", "a", 3.0, 1.0, 2.0)};
  EXPECT_FALSE(summarize(entries)[0].mean_expected_gap);
  entries[0].expected_ms = 8.0;
  EXPECT_DOUBLE_EQ(*summarize(entries)[0].mean_expected_gap, 0.2);
  EXPECT_FALSE(summarize(entries)[0].mean_expected_gap_less_drift);
  entries[1].expected_ms = 3.0;
  entries[0].less_drift_ms = 4.0;
  const ComparisonSummary summary = summarize(entries)[0];
  EXPECT_DOUBLE_EQ(*summary.mean_expected_gap, (0.2 + 0.5) / 2.0);
  EXPECT_DOUBLE_EQ(*summary.mean_expected_gap_less_drift, 1.0);
  EXPECT_DOUBLE_EQ(*summary.mean_gap, (0.5 + 0.5) / 2.0);  // of the predicted costs, as ever
}

TEST(Summarize, TasksThatNoPlannerSolved) {
  const auto summaries = summarize({unsolved("1", "a", 1.0), unsolved("1", "b", 3.0)});
  EXPECT_EQ(summaries[0].solved, 0);
  EXPECT_EQ(summaries[0].common, 0);
  EXPECT_EQ(summaries[0].wins, 0);
  EXPECT_EQ(summaries[0].mean_predicted_ms, std::nullopt);
  EXPECT_DOUBLE_EQ(summaries[1].mean_wall_ms, 3.0);
  EXPECT_TRUE(summarize({}).empty());
}

TEST(ComparisonJson, AMeanOverNoTaskIsNull) {
  const Json none = to_json(summarize({unsolved("1", "a", 1.0)}).front());
  ASSERT_NE(none.find("mean_predicted_ms"), nullptr);
  EXPECT_EQ(*none.find("mean_predicted_ms"), Json());
  const Json one = to_json(summarize({solved("1", "a", 5.0, 1.0)}).front());
  EXPECT_EQ(*one.find("mean_predicted_ms"), Json(5.0));
}

/// Puts every table on device `device`, whether that is allowed or not.
class OneDevicePlanner final : public Planner {
 public:
  explicit OneDevicePlanner(int device, bool gives_up = false)
      : device_(device), gives_up_(gives_up) {}
  [[nodiscard]] std::string_view name() const override { return gives_up_ ? "none" : "one"; }
  [[nodiscard]] PlanningResult plan(const Simulator& simulator,
                                    const PlannerOptions&) const override {
    if (gives_up_) throw InfeasibleError("no room");
    PlanningResult result;
    for (std::size_t t = 0; t < simulator.task().tables.size(); ++t) {
      result.plan.shards.push_back(
          {static_cast<int>(t), 0, simulator.task().tables[t].embedding_dim, device_});
    }
    result.predicted = simulator.cost(result.plan);
    return result;
  }

 private:
  int device_;
  bool gives_up_;
};

Task small_task(std::int64_t memory_bytes = 1 << 20) {
  return one_host_task({make_table("a", 100, 8), make_table("b", 100, 4)}, 2, memory_bytes);
}

std::vector<std::unique_ptr<Planner>> two_planners() {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(std::make_unique<OneDevicePlanner>(1));
  planners.push_back(std::make_unique<OneDevicePlanner>(0, true));
  return planners;
}

std::vector<ComparisonEntry> compare(const char* name, const Task& task,
                                     ComputeBackend* backend = nullptr) {
  const ComparisonTask given{name, std::make_shared<Simulator>(make_simulator(task))};
  return compare_on_tasks({&given, 1}, two_planners(), {}, backend).front();
}

TEST(CompareOnTask, RecordsPlansAndReasons) {
  const Simulator simulator = make_simulator(small_task());
  const auto entries = compare("x.json", small_task());
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].task, "x.json");
  EXPECT_EQ(entries[0].algorithm, "one");
  EXPECT_TRUE(entries[0].found);
  EXPECT_EQ(entries[0].predicted_ms, simulator.cost({{{0, 0, 8, 1}, {1, 0, 4, 1}}}).cost_ms);
  EXPECT_FALSE(entries[0].measured_ms.has_value());
  EXPECT_FALSE(entries[1].found);
  EXPECT_EQ(entries[1].reason, "no room");
}

TEST(CompareOnTask, AnInvalidPlanIsADefectOfThePlanner) {
  try {
    (void)compare("x.json", small_task(4000));  // they need 4,800 bytes
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("x.json: invalid plan by one: device 1: "));
  }
}

TEST(CompareOnTask, MeasuresIfAsked) {
  const auto backend = testing_collection::tiny_backend();
  const auto entries = compare("x", small_task(), backend.get());
  ASSERT_TRUE(entries[0].measured_ms && entries[0].measured_compute_ms && entries[0].compute_mape);
  EXPECT_GT(*entries[0].measured_compute_ms, 0.0);
  EXPECT_GE(*entries[0].measured_ms, *entries[0].measured_compute_ms);
  EXPECT_FALSE(entries[1].measured_ms.has_value());
}

}  // namespace
}  // namespace neuroshard
