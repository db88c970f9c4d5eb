// A histogram's mean counts, and its inversion into a mixture of Poisson rates.
#include "neuroshard/workload/histogram_reuse.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "neuroshard/workload/nonnegative_least_squares.h"
#include "neuroshard/workload/poisson_reuse.h"
#include "neuroshard/workload/rate_class.h"

namespace neuroshard {

namespace {

constexpr int kLastBin = kReuseBins - 1;

/// Mean counts of all bins, raised so that the distinct rows are at most `num_embeddings`.
std::array<double, kReuseBins> mean_counts(const ReuseHistogram& histogram, double num_embeddings,
                                           double num_indices) {
  std::array<double, kReuseBins> counts{};
  double mean = 0.0;
  double at_edges = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    counts[bin] = mean_count_of_bin(bin);
    mean += histogram[bin] * counts[bin];
    at_edges += histogram[bin] * std::exp2(bin);
  }
  const double missing = num_indices / num_embeddings - mean;  // hits per distinct row
  if (missing <= 0.0) return counts;
  if (histogram[kLastBin] > 0.0) {
    counts[kLastBin] += missing / histogram[kLastBin];
    return counts;
  }
  const double raise = at_edges > mean ? std::min(1.0, missing / (at_edges - mean)) : 0.0;
  for (int bin = 0; bin < kLastBin; ++bin) counts[bin] += raise * (std::exp2(bin) - counts[bin]);
  return counts;
}

ReuseHistogram normalised(ReuseHistogram histogram) {
  double sum = 0.0;
  for (const double share : histogram) sum += share;
  for (double& share : histogram) share /= sum;
  return histogram;
}

/// Rates from far below one hit to all lookups in one row, by factors of the square root of 2,
/// placed so that none is on the edge of a bin.
std::vector<double> rate_grid(double num_indices) {
  std::vector<double> rates;
  for (double rate = std::exp2(-6.25); rate < num_indices; rate *= std::numbers::sqrt2) {
    rates.push_back(rate);
  }
  rates.push_back(num_indices);
  return rates;
}

/// Solves for rows per distinct row at each rate. Rows of the system: the histogram; the lookups,
/// weakly, since the number of distinct rows is an estimate; and the size of the table, with a
/// slack unknown for its untouched rows.
Eigen::VectorXd fit_rows(const std::vector<double>& rates, const ReuseStatistics& target,
                         double num_embeddings) {
  constexpr double kLookupsWeight = 0.05;
  constexpr double kSizeWeight = 10.0;
  constexpr double kRidge = 1e-4;  // makes the solution unique and avoids huge cancelling terms
  const auto unknowns = static_cast<Eigen::Index>(rates.size());
  const Eigen::Index equations = kReuseBins + 2;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(equations + unknowns, unknowns + 1);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(equations + unknowns);
  for (Eigen::Index i = 0; i < unknowns; ++i) {
    const double rate = rates[static_cast<std::size_t>(i)];
    const PoissonReuse reuse = poisson_reuse(rate);
    for (int bin = 0; bin < kReuseBins; ++bin) a(bin, i) = reuse.rows[bin];
    a(kReuseBins, i) = kLookupsWeight * rate * target.distinct_rows / target.num_indices;
    a(kReuseBins + 1, i) = kSizeWeight * target.distinct_rows / num_embeddings;
    a(equations + i, i) = kRidge;
  }
  a(kReuseBins + 1, unknowns) = kSizeWeight;
  for (int bin = 0; bin < kReuseBins; ++bin) b[bin] = target.rows[bin] / target.distinct_rows;
  b[kReuseBins] = kLookupsWeight;
  b[kReuseBins + 1] = kSizeWeight;
  return nonnegative_least_squares(a, b).head(unknowns);
}

}  // namespace

double mean_count_of_bin(int bin) {
  if (bin == kLastBin) return 65'536.0;
  static const std::array<double, kLastBin> counts = [] {
    std::array<double, kLastBin> means{};
    std::int64_t count = 1;
    for (int i = 0; i < kLastBin; ++i) {
      double weighted = 0.0;
      double weight = 0.0;
      for (; count <= std::int64_t{1} << i; ++count) {
        weighted += 1.0 / static_cast<double>(count);
        weight += 1.0 / static_cast<double>(count * count);
      }
      means[i] = weighted / weight;
    }
    return means;
  }();
  return counts[bin];
}

ReuseStatistics histogram_statistics(const ReuseHistogram& histogram, std::int64_t num_embeddings,
                                     double num_indices) {
  const ReuseHistogram shares = normalised(histogram);
  const auto counts = mean_counts(shares, static_cast<double>(num_embeddings), num_indices);
  double mean = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) mean += shares[bin] * counts[bin];
  ReuseStatistics statistics;
  statistics.num_indices = num_indices;
  statistics.distinct_rows = num_indices / mean;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    statistics.rows[bin] = statistics.distinct_rows * shares[bin];
    statistics.indices[bin] = statistics.rows[bin] * counts[bin];
  }
  return statistics;
}

IndexDistribution distribution_of_histogram(const ReuseHistogram& histogram,
                                            std::int64_t num_embeddings, double num_indices) {
  const ReuseStatistics target = histogram_statistics(histogram, num_embeddings, num_indices);
  const std::vector<double> rates = rate_grid(num_indices);
  const Eigen::VectorXd rows = fit_rows(rates, target, static_cast<double>(num_embeddings));
  double total_rows = 0.0;
  double lookups = 0.0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    total_rows += rows[static_cast<Eigen::Index>(i)];
    lookups += rows[static_cast<Eigen::Index>(i)] * rates[i];
  }
  const double scale = num_indices / lookups;
  const double shrink = std::min(1.0, static_cast<double>(num_embeddings) / (total_rows * scale));
  std::vector<RateClass> classes;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double number = rows[static_cast<Eigen::Index>(i)] * scale * shrink;
    if (number > 0.0) classes.push_back({rates[i] / shrink, number});
  }
  IndexDistribution distribution;
  distribution.access_classes = whole_rows(std::move(classes));
  return distribution;
}

}  // namespace neuroshard
