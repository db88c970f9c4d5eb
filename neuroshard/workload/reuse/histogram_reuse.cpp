// A histogram's mean counts, and its inversion into a mixture of Poisson rates.
#include "neuroshard/workload/reuse/histogram_reuse.h"

#include <algorithm>
#include <cmath>

#include "neuroshard/workload/generate/nonnegative_least_squares.h"
#include "neuroshard/workload/reuse/poisson_reuse.h"
#include "neuroshard/workload/reuse/rate_class.h"

namespace neuroshard {

namespace {

constexpr int kLastBin = kReuseBins - 1;

/// Mean counts of all bins, raised so that the distinct rows are at most `num_embeddings`.
std::array<double, kReuseBins> mean_counts(const ReuseHistogram& histogram, double num_embeddings,
                                           double num_indices) {
  std::array<double, kReuseBins> counts{};
  double mean = 0.0;
  double mean_at_edges = 0.0;
  for (int bin = 0; bin < kReuseBins; ++bin) {
    counts[bin] = mean_count_of_bin(bin);
    mean += histogram[bin] * counts[bin];
    mean_at_edges += histogram[bin] * (bin == kLastBin ? counts[bin] : std::exp2(bin));
  }
  const double missing = num_indices / num_embeddings - mean;  // hits per distinct row
  if (missing <= 0.0) return counts;
  // The last bin has what no other has room for. Not where it holds less than a row: the tail of a
  // distribution would have most lookups.
  const double room = mean_at_edges - mean;
  const double raise = room > 0.0 ? std::min(1.0, missing / room) : 0.0;
  for (int bin = 0; bin < kLastBin; ++bin) counts[bin] += raise * (std::exp2(bin) - counts[bin]);
  if (missing > room && histogram[kLastBin] * num_embeddings >= 1.0) {
    counts[kLastBin] += (missing - room) / histogram[kLastBin];
  }
  return counts;
}

ReuseHistogram normalised(ReuseHistogram histogram) {
  double sum = 0.0;
  for (const double share : histogram) sum += share;
  for (double& share : histogram) share /= sum;
  return histogram;
}

/// Rates from far below one hit to all lookups in one row, by factors of 2^(1/4), placed so that
/// none is on the edge of a bin.
std::vector<double> rate_grid(double num_indices) {
  std::vector<double> rates;
  for (double step = -10.125; std::exp2(step) < num_indices; step += 0.25) {
    rates.push_back(std::exp2(step));
  }
  rates.push_back(num_indices);
  return rates;
}

/// Rows at each rate; the unknowns are the shares of distinct rows. Rows of the system: the
/// histogram; the lookups, weakly, since the number of distinct rows is an estimate; and that the
/// mean rate is at least lookups / rows of the table, with a slack unknown for what it is more.
std::vector<RateClass> fit_rates(const ReuseStatistics& target, double num_embeddings) {
  constexpr double kLookupsWeight = 0.05;
  constexpr double kSizeWeight = 10.0;
  const std::vector<double> rates = rate_grid(target.num_indices);
  const auto unknowns = static_cast<Eigen::Index>(rates.size());
  const Eigen::Index equations = kReuseBins + 2;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(equations, unknowns + 1);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(equations);
  std::vector<double> hit;
  for (Eigen::Index i = 0; i < unknowns; ++i) {
    const double rate = rates[static_cast<std::size_t>(i)];
    const PoissonReuse reuse = poisson_reuse(rate);
    const double rows = target.distinct_rows / reuse.hit;  // if all distinct rows had this rate
    for (int bin = 0; bin < kReuseBins; ++bin) a(bin, i) = reuse.rows[bin] / reuse.hit;
    a(kReuseBins, i) = kLookupsWeight * rows * rate / target.num_indices;
    a(kReuseBins + 1, i) = kSizeWeight * rows * (rate / target.num_indices - 1.0 / num_embeddings);
    hit.push_back(reuse.hit);
  }
  a(kReuseBins + 1, unknowns) = -kSizeWeight;
  for (int bin = 0; bin < kReuseBins; ++bin) b[bin] = target.rows[bin] / target.distinct_rows;
  b[kReuseBins] = kLookupsWeight;
  const Eigen::VectorXd shares = nonnegative_least_squares(a, b);
  std::vector<RateClass> classes;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double share = shares[static_cast<Eigen::Index>(i)];
    if (share > 0.0) classes.push_back({rates[i], share * target.distinct_rows / hit[i]});
  }
  return classes;
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

double hottest_row_hits(const ReuseStatistics& statistics) {
  double rows = 0.0;
  double hits = 0.0;
  for (int bin = kReuseBins; bin-- > 0;) {
    if (statistics.rows[bin] <= 0.0) continue;
    rows += statistics.rows[bin];
    hits = std::max(hits, statistics.indices[bin] / statistics.rows[bin] * std::min(rows, 1.0));
  }
  return hits;
}

IndexDistribution distribution_of_histogram(const ReuseHistogram& histogram,
                                            std::int64_t num_embeddings, double num_indices) {
  const ReuseStatistics target = histogram_statistics(histogram, num_embeddings, num_indices);
  std::vector<RateClass> classes = fit_rates(target, static_cast<double>(num_embeddings));
  double rows = 0.0;
  double lookups = 0.0;
  for (const RateClass& rate_class : classes) {
    rows += rate_class.rows;
    lookups += rate_class.rows * rate_class.rate;
  }
  // The fit's lookups are scaled to the table's; the total number of rows is made whole.
  const double whole = std::clamp(std::round(rows * num_indices / lookups), 1.0,
                                  static_cast<double>(num_embeddings));
  for (RateClass& rate_class : classes) {
    rate_class.rows *= whole / rows;
    rate_class.rate *= num_indices / lookups * rows / whole;
  }
  IndexDistribution distribution;
  distribution.access_classes = whole_rows(std::move(classes));
  return distribution;
}

}  // namespace neuroshard
