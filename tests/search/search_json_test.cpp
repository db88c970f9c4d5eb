// Options of a planner as JSON and back, and the statistics of a search as JSON.
#include "neuroshard/search/search_json.h"
#include "neuroshard/io/json/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "neuroshard/core/error.h"
#include "neuroshard/core/machine/parallel.h"

namespace neuroshard {
namespace {

PlannerOptions round_trip(const PlannerOptions& options) {
  const Json document = parse_json(to_line(to_json(options)), "options");
  return planner_options_from_json({document, "options"});
}

/// From 0 to 1, both included.
double arbitrary_share() {
  const auto bits = *rc::gen::arbitrary<std::uint64_t>();
  return static_cast<double>(bits) / static_cast<double>(std::numeric_limits<std::uint64_t>::max());
}

RC_GTEST_PROP(SearchJsonProperty, OptionsAreReadBackExactly, ()) {
  PlannerOptions options;
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.num_threads = std::min(*rc::gen::arbitrary<int>(), kMaxThreads);
  options.steps = *rc::gen::nonNegative<std::int64_t>();
  options.time_limit_seconds = *rc::gen::element(1e-9, 0.1, 1.0, 1e300);
  options.time_limit_seconds *= 1.0 + arbitrary_share();
  options.improvement =
      *rc::gen::element(ImprovementSchedule::thorough, ImprovementSchedule::brief);
  options.pessimism = arbitrary_share();
  options.least_gain = arbitrary_share();
  options.stop_by_clock = *rc::gen::arbitrary<bool>();
  const PlannerOptions read = round_trip(options);
  RC_ASSERT(read == options);
  RC_ASSERT(to_json(read) == to_json(options));
}

TEST(SearchJson, LimitsOfSeedAndTimeAreReadBackExactly) {
  PlannerOptions options;
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()}) {
    options.seed = seed;
    EXPECT_EQ(round_trip(options).seed, seed);
  }
  options.time_limit_seconds = std::numeric_limits<double>::infinity();
  EXPECT_EQ(round_trip(options).time_limit_seconds, options.time_limit_seconds);
}

TEST(SearchJson, OptionsGoByTheirLongNames) {
  EXPECT_EQ(
      to_line(to_json(PlannerOptions{})),
      R"({"steps": 0, "time_limit": "1s", "improvement": "thorough", )"
      R"("pessimism": 0.5, "least_gain": 0.01, "cuts": ["columns", "rows", "replicas"], "seed": 0, )"
      R"("threads": 0})");
}

TEST(SearchJson, SaysThatTheClockMayStopASearchWhereItMay) {
  PlannerOptions options;
  EXPECT_EQ(to_json(options).find("stop_by_clock"), nullptr);
  options.stop_by_clock = true;
  ASSERT_NE(to_json(options).find("stop_by_clock"), nullptr);
  EXPECT_EQ(*to_json(options).find("stop_by_clock"), Json(true));
  EXPECT_TRUE(round_trip(options).stop_by_clock);
}

/// The message about the default options with one field set to another value.
std::string refusal(const char* field, const Json& value) {
  Json options = to_json(PlannerOptions{});
  options.set(field, value);
  const Json search = Json::Object{{"options", options}};
  const JsonReader reader(search, "plan.json");
  try {
    (void)planner_options_from_json(reader.field("options"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

TEST(SearchJson, OptionsThatMeanNothingAreRefusedByName) {
  EXPECT_EQ(refusal("steps", 7), "read");
  EXPECT_EQ(refusal("cuts", Json::Array{}), "read");
  EXPECT_EQ(refusal("cuts", Json::Array{"rows", "pages"}),
            "plan.json: options.cuts[1]: expected \"columns\", \"rows\" or \"replicas\", got "
            "\"pages\"");
  EXPECT_EQ(refusal("steps", -1), "plan.json: options.steps: expected 0 or more, got -1");
  EXPECT_EQ(refusal("steps", 1.5),
            "plan.json: options.steps: expected an integer (no fraction, no exponent, at most 64 "
            "bits), got 1.5");
  EXPECT_EQ(refusal("time_limit", "250ms"), "read");
  EXPECT_EQ(refusal("time_limit", "0s"),
            "plan.json: options.time_limit: expected a time above 0 such as 500ms or 10s, or null, "
            "got \"0s\"");
  EXPECT_EQ(refusal("time_limit", 1.0),
            "plan.json: options.time_limit: expected a string, got 1.0");
  EXPECT_EQ(refusal("improvement", "short"),
            "plan.json: options.improvement: expected thorough or brief, got \"short\"");
  EXPECT_EQ(refusal("pessimism", 1.25),
            "plan.json: options.pessimism: expected a number from 0 to 1, got 1.25");
  EXPECT_EQ(refusal("least_gain", -0.5),
            "plan.json: options.least_gain: expected a number from 0 to 1, got -0.5");
  EXPECT_EQ(refusal("seed", -1),
            "plan.json: options.seed: expected an integer of 0 or more and 64 bits, got -1");
  EXPECT_EQ(refusal("seed", 0.5),
            "plan.json: options.seed: expected an integer of 0 or more and 64 bits, got 0.5");
  EXPECT_EQ(refusal("threads", std::int64_t{1} << 40),
            "plan.json: options.threads: expected an integer between -2147483648 and 1024, got "
            "1099511627776");
  EXPECT_EQ(refusal("threads", 1024), "read");
  EXPECT_EQ(refusal("threads", 1025),
            "plan.json: options.threads: expected an integer between -2147483648 and 1024, got "
            "1025");
  EXPECT_EQ(refusal("stop_by_clock", 1),
            "plan.json: options.stop_by_clock: expected true or false, got 1");
  EXPECT_THAT(refusal("beam_width", 3), testing::HasSubstr("got \"beam_width\""));
}

TEST(SearchJson, AnOptionThatIsAbsentHasItsDefault) {
  const Json options = Json::Object{{"seed", 5}};
  PlannerOptions expected;
  expected.seed = 5;
  EXPECT_TRUE(planner_options_from_json({options, "options"}) == expected);
}

TEST(SearchJson, StatisticsHaveLevelsAndRounds) {
  SearchStats stats;
  stats.plans_priced = 12;
  stats.states_expanded = 3;
  stats.head_evaluations = 40;
  stats.pieces_encoded = 9;
  stats.wall_ms = 17.0;  // not in the document
  stats.levels.push_back({1, 0, std::nullopt, 64, 0, 10, 4});
  stats.levels.push_back({2, 2, 1.5, 0, 7, 20, 5});
  stats.rounds.push_back({2.0,
                          1.25,
                          1,
                          {{ChainKind::annealing, 2.0, 100, 3, 2, 6, 1},
                           {ChainKind::large_neighbourhood, 1.25, 50, 4, 3, 4, 3}}});
  stats.rounds.push_back({1.25, 1.25, std::nullopt, {}});
  EXPECT_EQ(
      to_line(to_json(stats)),
      R"({"levels": [)"
      R"({"level": 0, "states_tried": 1, "states_feasible": 0, "best_cost_ms": null, )"
      R"("unplaced_bytes": 64, "plans_priced": 0, "head_evaluations": 10, "pieces_encoded": 4}, )"
      R"({"level": 1, "states_tried": 2, "states_feasible": 2, "best_cost_ms": 1.5, )"
      R"("unplaced_bytes": 0, "plans_priced": 7, "head_evaluations": 20, "pieces_encoded": 5}], )"
      R"("rounds": [)"
      R"({"round": 0, "cost_before_ms": 2.0, "cost_after_ms": 1.25, "best_chain": 1, "chains": [)"
      R"({"kind": "annealing", "best_cost_ms": 2.0, "steps": 100, "steps_accepted": 3, )"
      R"("plans_priced": 2, "head_evaluations": 6, "pieces_encoded": 1}, )"
      R"({"kind": "large_neighbourhood", "best_cost_ms": 1.25, "steps": 50, "steps_accepted": 4, )"
      R"("plans_priced": 3, "head_evaluations": 4, "pieces_encoded": 3}]}, )"
      R"({"round": 1, "cost_before_ms": 1.25, "cost_after_ms": 1.25, "best_chain": null, )"
      R"("chains": []}], "stopped_by_clock": false})");
}

}  // namespace
}  // namespace neuroshard
