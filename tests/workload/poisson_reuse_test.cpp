// Poisson bin probabilities against sums of the probabilities of all counts.
#include "neuroshard/workload/reuse/poisson_reuse.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/reuse_bin.h"

namespace neuroshard {
namespace {

PoissonReuse brute_force(double mean) {
  PoissonReuse reuse;
  reuse.hit = -std::expm1(-mean);
  const double spread = 40.0 + 12.0 * std::sqrt(mean);
  const auto first = static_cast<std::int64_t>(std::max(1.0, mean - spread));
  const auto last = static_cast<std::int64_t>(mean + spread);
  for (std::int64_t count = first; count <= last; ++count) {
    const auto k = static_cast<double>(count);
    const double probability = std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
    reuse.rows[reuse_bin(count)] += probability;
    reuse.indices[reuse_bin(count)] += probability * k;
  }
  return reuse;
}

double brute_force_above(double mean, int edge) {
  double share = 0.0;
  for (int count = edge + 1; count < edge + 200; ++count) {
    share += std::exp(count * std::log(mean) - mean - std::lgamma(count + 1.0));
  }
  return share;
}

TEST(PoissonReuse, AgreesWithBruteForce) {
  for (double mean = 1e-3; mean < 1e5; mean *= 1.037) {
    const PoissonReuse actual = poisson_reuse(mean);
    const PoissonReuse expected = brute_force(mean);
    EXPECT_NEAR(actual.hit, expected.hit, 1e-6);
    for (int bin = 0; bin < kReuseBins; ++bin) {
      EXPECT_NEAR(actual.rows[bin], expected.rows[bin], 1e-6) << mean << " bin " << bin;
      EXPECT_NEAR(actual.indices[bin] / mean, expected.indices[bin] / mean, 1e-6)
          << mean << " bin " << bin;
    }
  }
}

/// Rows that are hit more often than `edge` are few, but of a table of 10^12 rows some.
double share_above(double mean, int edge) {
  const PoissonReuse reuse = poisson_reuse(mean);
  double share = 0.0;
  for (int bin = kReuseBins; bin-- > 0 && (1 << bin) > edge;) share += reuse.rows[bin];
  return share;
}

TEST(PoissonReuse, TheRarestHotRowsKeepTheirRelativePrecision) {
  EXPECT_NEAR(share_above(64.0, 128) / share_above(64.0 + 1e-9, 128), 1.0, 1e-3);
  EXPECT_NEAR(share_above(150.0, 256) / brute_force_above(150.0, 256), 1.0, 1e-3);
  EXPECT_NEAR(share_above(1'700.0, 2'048) / brute_force_above(1'700.0, 2'048), 1.0, 1e-3);
}

TEST(PoissonReuse, NoShareOfHotRowsFallsWithTheMean) {
  for (int edge = 1; edge <= 32'768; edge *= 2) {
    double before = 0.0;
    for (double mean = 1.0; mean < 4e4; mean *= 1.001) {
      const double share = share_above(mean, edge);
      EXPECT_GE(share, before * (1.0 - 1e-6) - 1e-20) << mean << ", " << edge;
      before = share;
    }
  }
}

TEST(PoissonReuse, SumsAddUp) {
  for (double mean = 1e-12; mean < 1e12; mean *= 1.31) {
    const PoissonReuse reuse = poisson_reuse(mean);
    double rows = 0.0;
    double indices = 0.0;
    for (int bin = 0; bin < kReuseBins; ++bin) {
      EXPECT_GE(reuse.rows[bin], 0.0) << mean;
      EXPECT_GE(reuse.indices[bin], 0.0) << mean;
      rows += reuse.rows[bin];
      indices += reuse.indices[bin];
    }
    EXPECT_NEAR(rows / reuse.hit, 1.0, 1e-9) << mean;
    EXPECT_NEAR(indices / mean, 1.0, 1e-9) << mean;
  }
}

TEST(PoissonReuse, TinyMeansKeepTheirRelativePrecision) {
  const PoissonReuse reuse = poisson_reuse(1e-9);
  EXPECT_NEAR(reuse.rows[0] / 1e-9, 1.0, 1e-8);
  EXPECT_NEAR(reuse.rows[1] / 5e-19, 1.0, 1e-8);
}

TEST(PoissonReuse, NoHitsForAMeanOfZero) {
  const PoissonReuse reuse = poisson_reuse(0.0);
  EXPECT_EQ(reuse.hit, 0.0);
  for (int bin = 0; bin < kReuseBins; ++bin) EXPECT_EQ(reuse.rows[bin], 0.0);
}

}  // namespace
}  // namespace neuroshard
