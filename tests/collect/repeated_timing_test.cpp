// The interval of a quantile has the coverage that it promises, and repetition stops when it may.
#include "neuroshard/collect/compute/repeated_timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "neuroshard/core/random.h"

namespace neuroshard {
namespace {

TEST(EstimateQuantile, FewValuesHaveNoInterval) {
  const std::vector<double> values{1.0, 2.0, 3.0, 4.0, 5.0};
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.5).value, 3.0);
  EXPECT_TRUE(std::isinf(estimate_quantile(values, 0.5).interval));
  EXPECT_TRUE(std::isinf(estimate_quantile({}, 0.5).interval));
}

TEST(EstimateQuantile, SixValuesGiveTheirRangeForAMedian) {
  const std::vector<double> values{6.0, 1.0, 3.0, 2.0, 5.0, 4.0};
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.5).value, 3.5);
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.5).interval, 0.5 * 5.0 / 3.5);
}

TEST(EstimateQuantile, ThirteenValuesGiveAFirstQuartileAnInterval) {
  std::vector<double> values(12, 1.0);
  EXPECT_TRUE(std::isinf(estimate_quantile(values, 0.25).interval));
  values.push_back(1.0);
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.25).interval, 0.0);
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.25).value, 1.0);
}

TEST(EstimateQuantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> values{4.0, 1.0, 2.0, 3.0};
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.25).value, 1.75);
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 0.0).value, 1.0);
  EXPECT_DOUBLE_EQ(estimate_quantile(values, 1.0).value, 4.0);
}

TEST(EstimateQuantile, IntervalEnclosesTheTrueQuantileAtLeast95TimesIn100) {
  Random random(5);
  for (const double quantile : {0.25, 0.5}) {
    const double truth = quantile == 0.5 ? 1.0 : std::exp(-0.67448975);
    for (const int n : {14, 25, 60}) {
      int enclosed = 0;
      constexpr int kTrials = 4000;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> values(n);
        // Skewed, as timings are.
        for (double& value : values) value = std::exp(random.normal());
        const QuantileEstimate estimate = estimate_quantile(values, quantile);
        // The interval's ends are not kept: its whole width on either side may only widen it.
        enclosed += std::abs(truth - estimate.value) <= 2.0 * estimate.interval * estimate.value;
      }
      EXPECT_GE(enclosed, kTrials * 0.95) << quantile << " of " << n;
    }
  }
}

int repetitions(const RepetitionOptions& options, const std::function<double(int)>& value) {
  RepeatedTiming timing(options);
  int calls = 0;
  while (!timing.done()) timing.add(value(calls++), 0.001);
  EXPECT_EQ(calls, static_cast<int>(timing.values().size()) + options.warm_ups);
  return static_cast<int>(timing.values().size());
}

TEST(RepeatedTiming, StopsOnceTheIntervalIsReached) {
  EXPECT_EQ(repetitions({}, [](int call) { return 1.0 + 0.001 * (call % 2); }), 13);
  EXPECT_EQ(repetitions({.max_repetitions = 20}, [](int call) { return 1.0 + call % 7; }), 20);
  EXPECT_EQ(repetitions({.max_repetitions = 20, .max_seconds = 0.0175},
                        [](int call) { return 1.0 + call % 7; }),
            17);
}

TEST(RepeatedTiming, FewSufficeOnceTimeIsOver) {
  const RepetitionOptions hurried{.target_interval = 0.0,
                                  .max_repetitions = 20,
                                  .max_seconds = 0.0025,
                                  .hurried_repetitions = 3};
  EXPECT_EQ(repetitions(hurried, [](int call) { return 1.0 + call % 7; }), 3);
  RepetitionOptions patient = hurried;
  patient.max_seconds = 1.0;
  EXPECT_EQ(repetitions(patient, [](int call) { return 1.0 + call % 7; }), 20);
  patient.max_seconds = 0.0075;  // over before the usual minimum
  EXPECT_EQ(repetitions(patient, [](int call) { return 1.0 + call % 7; }), 7);
}

TEST(RepeatedTiming, LooksAfterTheFewestThatMaySuffice) {
  RepeatedTiming timing({.max_seconds = 1.0, .hurried_repetitions = 5});
  EXPECT_EQ(timing.runs_until_next_look(), 6);  // with the warm-up
  for (int run = 0; run < 6; ++run) timing.add(1.0, 0.1);
  EXPECT_FALSE(timing.done());
  EXPECT_EQ(timing.runs_until_next_look(), 8);  // up to the usual 13
  RepeatedTiming slow({.max_seconds = 1.0, .hurried_repetitions = 5});
  for (int run = 0; run < 6; ++run) slow.add(1.0, 1.0);
  EXPECT_TRUE(slow.done());
}

TEST(RepeatedTiming, WarmUpsDoNotCount) {
  RepeatedTiming timing({.warm_ups = 2});
  for (const double value : {9.0, 9.0, 1.0}) timing.add(value, 0.0);
  ASSERT_EQ(timing.values().size(), 1U);
  EXPECT_DOUBLE_EQ(timing.estimate().value, 1.0);
}

TEST(RepeatedTiming, SaysWhenToLookAgain) {
  RepeatedTiming timing({.warm_ups = 1, .min_repetitions = 4, .further_repetitions = 3});
  EXPECT_EQ(timing.runs_until_next_look(), 5);
  timing.add(1.0, 0.0);
  EXPECT_EQ(timing.runs_until_next_look(), 4);
  for (int run = 0; run < 4; ++run) timing.add(1.0, 0.0);
  EXPECT_EQ(timing.runs_until_next_look(), 3);
}

}  // namespace
}  // namespace neuroshard
