// Deconvolution of published reuse shares into a spectrum of rates.
//
// With m[c] the share of all lookups that go to rows of rate r[c], a row of that rate being hit
// X ~ Poisson(r[c]) times, the published aggregates are linear in m:
//   share of lookups in bin i   = sum over c of m[c] E[X; X in bin i] / r[c]
//   share of rows in bin i      = sum over c of m[c] P(X in bin i) / r[c] * lookups / distinct rows
//   distinct rows / lookups     = sum over c of m[c] P(X >= 1) / r[c]
//   1                           = sum over c of m[c]
#include "neuroshard/workload/generate/rate_spectrum.h"

#include <cmath>
#include <numbers>

#include "neuroshard/workload/generate/nonnegative_least_squares.h"
#include "neuroshard/workload/reuse/poisson_reuse.h"

namespace neuroshard {

namespace {

/// The published bins say little about rates far below one hit, whose rows are all hit once or not
/// at all. This cold end is assumed.
constexpr double kLowestRate = 0x1p-4;

/// They say nothing about rates in the open last bin. The hottest row is assumed to be below this.
constexpr double kHighestRate = 0x1p18;

/// Weight of the second differences of m: enough to choose among solutions, too little to move the
/// aggregates by as much as the published digits' rounding.
constexpr double kSmoothness = 0.01;

/// Weight of the two sums, which are published exactly, relative to the rounded shares.
constexpr double kSumWeight = 10.0;

std::vector<double> rate_grid() {
  std::vector<double> rates;
  const double step = std::numbers::sqrt2;
  // Half a step away from the edges of the bins.
  for (double rate = kLowestRate * std::sqrt(step); rate < kHighestRate; rate *= step) {
    rates.push_back(rate);
  }
  return rates;
}

/// Shares published with three digits do not add up to 1 exactly.
ReuseHistogram normalised(ReuseHistogram shares) {
  double sum = 0.0;
  for (const double share : shares) sum += share;
  for (double& share : shares) share /= sum;
  return shares;
}

struct LinearSystem {
  Eigen::MatrixXd a;
  Eigen::VectorXd b;
};

void set_aggregates(const LocalityFacts& facts, const std::vector<double>& rates,
                    LinearSystem& system) {
  const double lookups_per_row = facts.num_indices / facts.num_distinct_rows;
  const ReuseHistogram rows = normalised(facts.share_of_rows);
  const ReuseHistogram indices = normalised(facts.share_of_indices);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    const PoissonReuse reuse = poisson_reuse(rates[i]);
    for (int bin = 0; bin < kReuseBins; ++bin) {
      system.a(bin, column) = reuse.indices[bin] / rates[i];
      system.a(kReuseBins + bin, column) = reuse.rows[bin] / rates[i] * lookups_per_row;
    }
    system.a(2 * kReuseBins, column) = kSumWeight * reuse.hit / rates[i] * lookups_per_row;
    system.a(2 * kReuseBins + 1, column) = kSumWeight;
  }
  for (int bin = 0; bin < kReuseBins; ++bin) {
    system.b[bin] = indices[bin];
    system.b[kReuseBins + bin] = rows[bin];
  }
  system.b[2 * kReuseBins] = kSumWeight;
  system.b[2 * kReuseBins + 1] = kSumWeight;
}

/// Second differences, the spectrum being 0 outside the grid.
void set_smoothness(Eigen::Index first_row, LinearSystem& system) {
  const Eigen::Index unknowns = system.a.cols();
  for (Eigen::Index i = 0; i < unknowns; ++i) {
    system.a(first_row + i, i) = 2.0 * kSmoothness;
    if (i > 0) system.a(first_row + i, i - 1) = -kSmoothness;
    if (i + 1 < unknowns) system.a(first_row + i, i + 1) = -kSmoothness;
  }
}

}  // namespace

std::vector<RateClass> rate_spectrum(const LocalityFacts& facts) {
  const std::vector<double> rates = rate_grid();
  const auto unknowns = static_cast<Eigen::Index>(rates.size());
  const Eigen::Index aggregates = 2 * kReuseBins + 2;
  LinearSystem system{Eigen::MatrixXd::Zero(aggregates + unknowns, unknowns),
                      Eigen::VectorXd::Zero(aggregates + unknowns)};
  set_aggregates(facts, rates, system);
  set_smoothness(aggregates, system);
  const Eigen::VectorXd shares = nonnegative_least_squares(system.a, system.b);
  std::vector<RateClass> spectrum;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double lookups = shares[static_cast<Eigen::Index>(i)] / shares.sum() * facts.num_indices;
    if (lookups > 0.0) spectrum.push_back({rates[i], lookups / rates[i]});
  }
  return spectrum;
}

}  // namespace neuroshard
