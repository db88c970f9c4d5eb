// Poisson bin probabilities: direct sums for small means, Temme's expansion for large ones.
#include "neuroshard/workload/reuse/poisson_reuse.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace neuroshard {

namespace {

/// Up to this mean the probabilities are summed one by one: at most some 130 terms.
constexpr double kDirectMean = 64.0;

/// More than this many standard deviations below the mean, a Poisson variable with a mean above
/// kDirectMean is found with a probability below 1e-10.
constexpr double kTailDeviations = 7.5;
/// Above the mean, where a table's few hottest rows are and its size counts, with one below 1e-20.
constexpr double kUpperTailDeviations = 12.0;

/// Above this mean every outcome is in the last bin: 32,768 is more than 10 deviations below.
constexpr double kLastBinMean = 35'000.0;

/// The upper edges of all bins but the last: 1, 2, 4, ..., 32768.
constexpr int kEdges = kReuseBins - 1;
constexpr double edge(int bin) { return static_cast<double>(1 << bin); }

PoissonReuse sum_directly(double mean) {
  PoissonReuse reuse;
  reuse.hit = -std::expm1(-mean);
  double probability = std::exp(-mean);
  double count = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    double rows = 0.0;
    double indices = 0.0;
    while (count < edge(bin)) {
      count += 1.0;
      probability *= mean / count;
      rows += probability;
      indices += probability * count;
      if (count > mean && probability < 1e-18 * reuse.hit) break;
    }
    reuse.rows[bin] = rows;
    reuse.indices[bin] = indices;
    if (count < edge(bin) || mean == 0.0) break;
  }
  return reuse;
}

/// P(X <= count) and P(X > count), each with its own relative precision.
struct Split {
  double up_to = 0.0;
  double above = 1.0;
};

/// Of a Poisson variable with mean x, at count a - 1: the regularised upper and lower incomplete
/// gamma functions Q(a, x) and P(a, x) for a > 4 and |x - a| within the tails. Temme's uniform
/// asymptotic expansion (Temme 1979, "The asymptotic expansion of the incomplete gamma functions"),
/// terms of order 0 and 1 in 1/a, each as a power series in eta.
Split split_at(double a, double x) {
  constexpr std::array<double, 9> kOrder0 = {
      -3.3333333333333333e-1, 8.3333333333333333e-2,  -1.4814814814814815e-2,
      1.1574074074074074e-3,  3.5273368606701940e-4,  -1.7875514403292181e-4,
      3.9192631785224378e-5,  -2.1854485106799922e-6, -1.8540622107151600e-6};
  constexpr std::array<double, 5> kOrder1 = {-1.8518518518518519e-3, -3.4722222222222222e-3,
                                             2.6455026455026455e-3, -9.9022633744855967e-4,
                                             2.0576131687242798e-4};
  const double mu = (x - a) / a;
  const double half_eta_squared = mu - std::log1p(mu);
  const double eta = std::copysign(std::sqrt(2.0 * half_eta_squared), mu);
  double order0 = 0.0;
  for (std::size_t i = kOrder0.size(); i-- > 0;) order0 = order0 * eta + kOrder0[i];
  double order1 = 0.0;
  for (std::size_t i = kOrder1.size(); i-- > 0;) order1 = order1 * eta + kOrder1[i];
  const double deviations = eta * std::sqrt(0.5 * a);
  const double correction = std::exp(-a * half_eta_squared) /
                            std::sqrt(2.0 * std::numbers::pi * a) * (order0 + order1 / a);
  return {0.5 * std::erfc(deviations) + correction, 0.5 * std::erfc(-deviations) - correction};
}

/// P(low < X <= high), from the smaller ones of the probabilities.
double between(const Split& low, const Split& high) {
  return low.above < 0.5 ? low.above - high.above : high.up_to - low.up_to;
}

/// P(X = count), by Stirling's series for log(count!); count > 4.
double probability_at(double count, double mean) {
  const double mu = (mean - count) / count;
  const double log_ratio = -count * (mu - std::log1p(mu));
  const double stirling = 1.0 / (12.0 * count) - 1.0 / (360.0 * count * count * count);
  return std::exp(log_ratio - stirling) / std::sqrt(2.0 * std::numbers::pi * count);
}

PoissonReuse from_distribution_function(double mean) {
  PoissonReuse reuse;
  reuse.hit = 1.0;
  const double deviation = std::sqrt(mean);
  Split before;              // at the previous edge
  Split before_size_biased;  // at one below the previous edge
  for (int bin = 0; bin < kReuseBins; ++bin) {
    const bool last = bin == kEdges || edge(bin) > mean + kUpperTailDeviations * deviation;
    Split here{1.0, 0.0};
    Split size_biased{1.0, 0.0};
    if (!last) {
      if (edge(bin) < mean - kTailDeviations * deviation) continue;
      here = split_at(edge(bin) + 1.0, mean);
      const double at_edge = probability_at(edge(bin), mean);
      size_biased = {here.up_to - at_edge, here.above + at_edge};
    }
    reuse.rows[bin] = between(before, here);
    reuse.indices[bin] = mean * between(before_size_biased, size_biased);
    if (last) break;
    before = here;
    before_size_biased = size_biased;
  }
  return reuse;
}

}  // namespace

PoissonReuse poisson_reuse(double mean) {
  if (mean <= kDirectMean) return sum_directly(mean);
  if (mean <= kLastBinMean) return from_distribution_function(mean);
  PoissonReuse reuse;
  reuse.hit = 1.0;
  reuse.rows[kReuseBins - 1] = 1.0;
  reuse.indices[kReuseBins - 1] = mean;
  return reuse;
}

}  // namespace neuroshard
