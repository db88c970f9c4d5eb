// Metrics against their definitions, ties included.
#include "neuroshard/train/metrics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

namespace neuroshard {
namespace {

int sign(double value) { return (value > 0.0) - (value < 0.0); }

/// Tau-b over all pairs: (concordant - discordant) / sqrt(pairs untied in a * pairs untied in b).
std::optional<double> naive_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double score = 0.0;
  double untied_a = 0.0;
  double untied_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      score += sign(a[i] - a[j]) * sign(b[i] - b[j]);
      untied_a += a[i] != a[j] ? 1.0 : 0.0;
      untied_b += b[i] != b[j] ? 1.0 : 0.0;
    }
  }
  if (untied_a * untied_b == 0.0) return std::nullopt;
  return score / std::sqrt(untied_a * untied_b);
}

TEST(PredictionMetrics, AreFiniteWhateverIsPredicted) {
  const PredictionMetrics metrics =
      prediction_metrics(std::vector{0.0, -1.0, 2.0}, std::vector{1.0, 1e12, 2.0});
  EXPECT_DOUBLE_EQ(metrics.largest_factor, 1e21);
  EXPECT_DOUBLE_EQ(metrics.mse, (1.0 + (1e12 + 1.0) * (1e12 + 1.0)) / 3.0);
}

TEST(KendallTau, KnownValues) {
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector{1.0, 2.0, 3.0}, std::vector{2.0, 4.0, 9.0}).value(),
                   1.0);
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector{1.0, 2.0, 3.0}, std::vector{9.0, 4.0, 2.0}).value(),
                   -1.0);
  // The example of scipy.stats.kendalltau's documentation.
  EXPECT_NEAR(
      kendall_tau(std::vector{12.0, 2.0, 1.0, 12.0, 2.0}, std::vector{1.0, 4.0, 7.0, 1.0, 0.0})
          .value(),
      -0.47140452079103173, 1e-15);
}

TEST(KendallTau, IsNotDefinedWhereASideIsConstant) {
  EXPECT_EQ(kendall_tau(std::vector{1.0, 1.0, 1.0}, std::vector{1.0, 2.0, 3.0}), std::nullopt);
  EXPECT_EQ(kendall_tau(std::vector{1.0, 2.0, 3.0}, std::vector{1.0, 1.0, 1.0}), std::nullopt);
  EXPECT_EQ(kendall_tau(std::vector<double>{}, std::vector<double>{}), std::nullopt);
  EXPECT_EQ(kendall_tau(std::vector{1.0}, std::vector{1.0}), std::nullopt);
}

RC_GTEST_PROP(KendallTauProperty, MatchesAllPairs, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 60);
  // Few distinct values give many ties, many give few.
  const int most = *rc::gen::element(2, 5, 1000);
  const auto values = rc::gen::container<std::vector<double>>(
      count, rc::gen::map(rc::gen::inRange(0, most), [](int i) { return 0.5 * i; }));
  const std::vector<double> a = *values;
  const std::vector<double> b = *values;
  const std::optional<double> tau = kendall_tau(a, b);
  const std::optional<double> expected = naive_tau(a, b);
  RC_ASSERT(tau.has_value() == expected.has_value());
  RC_ASSERT(tau.has_value() == kendall_tau(b, a).has_value());
  if (!tau) return;
  RC_ASSERT(std::abs(*tau - *expected) < 1e-12);
  RC_ASSERT(std::abs(*tau - *kendall_tau(b, a)) < 1e-12);
}

TEST(PredictionMetrics, ByHand) {
  const PredictionMetrics metrics =
      prediction_metrics(std::vector{1.0, 3.0, 8.0}, std::vector{2.0, 4.0, 5.0});
  EXPECT_DOUBLE_EQ(metrics.mse, (1.0 + 1.0 + 9.0) / 3.0);
  EXPECT_DOUBLE_EQ(metrics.mae, 5.0 / 3.0);
  EXPECT_DOUBLE_EQ(metrics.mape, (0.5 + 0.25 + 0.6) / 3.0);
  EXPECT_DOUBLE_EQ(metrics.median, 0.5);
  EXPECT_DOUBLE_EQ(metrics.percentile_95, 0.6);
  EXPECT_DOUBLE_EQ(metrics.largest_factor, 2.0);  // 1 for 2, more than 8 for 5
  EXPECT_DOUBLE_EQ(metrics.kendall_tau.value(), 1.0);
  EXPECT_EQ(metrics.count, 3u);
}

TEST(PredictionMetrics, QuantilesOfAHundredErrors) {
  std::vector<double> predicted;
  for (int percent = 100; percent >= 1; --percent) predicted.push_back(1.0 - 0.0099 * percent);
  const PredictionMetrics metrics = prediction_metrics(predicted, std::vector(100, 1.0));
  EXPECT_NEAR(metrics.median, 0.0099 * 50, 1e-12);
  EXPECT_NEAR(metrics.percentile_95, 0.0099 * 95, 1e-12);
  EXPECT_NEAR(metrics.largest_factor, 1.0 / (1.0 - 0.99), 1e-9);  // as bad as 100 times too high
}

TEST(PredictionMetrics, OfNothing) {
  const PredictionMetrics metrics = prediction_metrics({}, {});
  EXPECT_EQ(metrics.count, 0u);
  EXPECT_EQ(metrics.mape, 0.0);
  EXPECT_EQ(metrics.median, 0.0);
  EXPECT_EQ(metrics.largest_factor, 1.0);
  EXPECT_EQ(metrics.kendall_tau, std::nullopt);
}

}  // namespace
}  // namespace neuroshard
