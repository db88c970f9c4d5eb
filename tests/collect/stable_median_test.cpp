// The interval of the median holds what it promises, and repetition stops when it may.
#include "neuroshard/collect/compute/stable_median.h"

#include <gtest/gtest.h>

#include <cmath>

#include "neuroshard/core/random.h"

namespace neuroshard {
namespace {

TEST(StableMedian, FewValuesHaveNoInterval) {
  const std::vector<double> values{1.0, 2.0, 3.0, 4.0, 5.0};
  EXPECT_DOUBLE_EQ(estimate_median(values).median, 3.0);
  EXPECT_TRUE(std::isinf(estimate_median(values).interval));
}

TEST(StableMedian, SixValuesGiveTheirRange) {
  const std::vector<double> values{6.0, 1.0, 3.0, 2.0, 5.0, 4.0};
  EXPECT_DOUBLE_EQ(estimate_median(values).median, 3.5);
  EXPECT_DOUBLE_EQ(estimate_median(values).interval, 0.5 * 5.0 / 3.5);
}

TEST(StableMedian, IntervalEnclosesTheTrueMedianAtLeast95TimesIn100) {
  Random random(5);
  for (const int n : {6, 7, 10, 25, 60}) {
    int enclosed = 0;
    constexpr int kTrials = 4000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(n);
      // Skewed, as timings are; its median is exp(0) = 1.
      for (double& value : values) value = std::exp(random.normal());
      const MedianEstimate estimate = estimate_median(values);
      // The interval's two ends are not kept apart; its width around the median may only widen it.
      enclosed += std::abs(std::log(estimate.median)) <= 4.0 * estimate.interval;
    }
    EXPECT_GE(enclosed, kTrials * 0.95) << n;
  }
}

TEST(StableMedian, StopsOnceTheIntervalIsReached) {
  int calls = 0;
  const auto steady = [&] { return 1.0 + 0.001 * (calls++ % 2); };
  EXPECT_EQ(repeat_until_stable(steady, {}).size(), 7U);
  EXPECT_EQ(calls, 9);  // two warm-ups
  calls = 0;
  const auto noisy = [&] { return 1.0 + (calls++ % 2); };
  EXPECT_EQ(repeat_until_stable(noisy, {.max_repetitions = 20}).size(), 20U);
}

}  // namespace
}  // namespace neuroshard
