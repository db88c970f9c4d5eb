// The interval of a quantile has the coverage that it promises, and repetition stops when it may.
#include "neuroshard/collect/compute/repeated_timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

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

/// The chance that at most `most` of n values lie below their distribution's quantile.
double chance_of_at_most(int most, int n, double quantile) {
  double chance = 0.0;
  for (int k = 0; k <= most; ++k) {
    chance += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) +
                       k * std::log(quantile) + (n - k) * std::log1p(-quantile));
  }
  return chance;
}

TEST(EstimateQuantile, IntervalIsTheShortestWith95Percent) {
  constexpr double kTail = 0.025;
  for (const double quantile : {0.25, 0.5}) {
    for (const int n : {13, 14, 25, 60}) {
      // No two differences of powers are equal: the width tells the interval's ends.
      std::vector<double> values(n);
      for (int i = 0; i < n; ++i) values[i] = std::pow(1.5, i);
      const QuantileEstimate estimate = estimate_quantile(values, quantile);
      const double width = 2.0 * estimate.interval * estimate.value;
      int found = 0;
      for (int lower = 0; lower < n; ++lower) {
        for (int upper = lower + 1; upper < n; ++upper) {
          if (std::abs(values[upper] - values[lower] - width) > 1e-12 * width) continue;
          ++found;
          // The quantile is below the interval if at most `lower` values are below the quantile.
          EXPECT_LE(chance_of_at_most(lower, n, quantile), kTail) << quantile << " of " << n;
          EXPECT_GT(chance_of_at_most(lower + 1, n, quantile), kTail) << quantile << " of " << n;
          EXPECT_LE(1.0 - chance_of_at_most(upper, n, quantile), kTail) << quantile << " of " << n;
          EXPECT_GT(1.0 - chance_of_at_most(upper - 1, n, quantile), kTail)
              << quantile << " of " << n;
        }
      }
      EXPECT_EQ(found, 1) << quantile << " of " << n;
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
