// Power law reuse: exact head, quadrature over the logarithm of the rank, closed-form ends.
#include "neuroshard/workload/reuse/zipf_reuse.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "neuroshard/workload/reuse/poisson_reuse.h"

namespace neuroshard {

namespace {

/// Ranks summed one by one. Beyond them, replacing a sum over ranks by an integral costs about
/// exponent^2 / (24 rank^2), relative.
constexpr std::int64_t kHeadRanks = 256;

/// Rows with more expected hits are in the last bin, see poisson_reuse.cpp.
constexpr double kAlwaysLastBin = 35'000.0;

/// Rows with fewer expected hits are hit once or not at all, up to this relative error.
constexpr double kAlwaysFirstBin = 1e-6;

/// Integral of x^-exponent over [low, high].
double power_integral(double exponent, double low, double high) {
  const double log_ratio = std::log(high / low);
  const double z = (1.0 - exponent) * log_ratio;
  const double growth = std::abs(z) < 1e-12 ? 1.0 : std::expm1(z) / z;
  return std::pow(low, 1.0 - exponent) * log_ratio * growth;
}

/// The rows of ranks after the head, as a continuum over [first - 1/2, last + 1/2].
class Tail {
 public:
  Tail(double exponent, double last_rank) : exponent_(exponent), high_(last_rank + 0.5) {}

  /// Sum of the weights: midpoint Euler-Maclaurin summation, one correction term.
  [[nodiscard]] double weight() const {
    const double slope_low = -exponent_ * std::pow(kLow, -exponent_ - 1.0);
    const double slope_high = -exponent_ * std::pow(high_, -exponent_ - 1.0);
    return power_integral(exponent_, kLow, high_) - (slope_high - slope_low) / 24.0;
  }

  /// `scale`: expected hits of rank 1.
  void add_reuse(double scale, ReuseStatistics& statistics) const {
    const double end_of_last_bin = rank_of_mean(scale, kAlwaysLastBin);
    const double start_of_first_bin = rank_of_mean(scale, kAlwaysFirstBin);
    if (end_of_last_bin > kLow) {
      statistics.rows[kReuseBins - 1] += end_of_last_bin - kLow;
      statistics.indices[kReuseBins - 1] +=
          scale * power_integral(exponent_, kLow, end_of_last_bin);
    }
    add_quadrature(scale, end_of_last_bin, start_of_first_bin, statistics);
    if (start_of_first_bin < high_) {
      const double hits = scale * power_integral(exponent_, start_of_first_bin, high_);
      statistics.rows[0] += hits;
      statistics.indices[0] += hits;
    }
  }

 private:
  /// The rank with this many expected hits, within the tail.
  [[nodiscard]] double rank_of_mean(double scale, double mean) const {
    return std::clamp(std::pow(scale / mean, 1.0 / exponent_), kLow, high_);
  }

  /// Gauss-Legendre with three points in each of many ranges of log(rank). A range is so narrow
  /// that a row's mean changes by less than about 1.5 standard deviations of its hits.
  void add_quadrature(double scale, double low, double high, ReuseStatistics& statistics) const {
    constexpr std::array<double, 3> kNodes = {-0.774596669241483377, 0.0, 0.774596669241483377};
    constexpr std::array<double, 3> kWeights = {5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0};
    const double end = std::log(high);
    for (double start = std::log(low); start < end;) {
      const double mean_at_start = scale * std::exp(-exponent_ * start);
      const double log_mean_width = std::clamp(1.5 / std::sqrt(mean_at_start), 0.03, 0.5);
      const double width = std::min({0.5, log_mean_width / exponent_, end - start});
      for (std::size_t i = 0; i < kNodes.size(); ++i) {
        const double log_rank = start + width * (0.5 + 0.5 * kNodes[i]);
        const double rows = width * kWeights[i] * std::exp(log_rank);
        add_rows(statistics, rows, poisson_reuse(scale * std::exp(-exponent_ * log_rank)));
      }
      if (start + width == start) break;  // the rest is narrower than rounding
      start += width;
    }
  }

  static constexpr double kLow = static_cast<double>(kHeadRanks) + 0.5;
  double exponent_;
  double high_;
};

}  // namespace

double zipf_weight(double exponent, std::int64_t num_embeddings) {
  double weight = 0.0;
  for (std::int64_t i = std::min(kHeadRanks, num_embeddings); i-- > 0;) {
    weight += std::pow(static_cast<double>(i + 1), -exponent);
  }
  if (num_embeddings <= kHeadRanks) return weight;
  return weight + Tail(exponent, static_cast<double>(num_embeddings)).weight();
}

double zipf_range_weight(double exponent, std::int64_t first, std::int64_t count) {
  double weight = 0.0;
  const std::int64_t end = first + count;
  for (; first < std::min(end, kHeadRanks); ++first) {
    weight += std::pow(static_cast<double>(first + 1), -exponent);
  }
  if (first >= end) return weight;
  // Wrong by about exponent^2 / (24 rank^2), relative.
  return weight +
         power_integral(exponent, static_cast<double>(first) + 0.5, static_cast<double>(end) + 0.5);
}

ReuseStatistics zipf_reuse(double exponent, std::int64_t num_embeddings, double num_indices) {
  const std::int64_t head = std::min(kHeadRanks, num_embeddings);
  std::array<double, kHeadRanks> weights{};
  double weight = 0.0;
  for (std::int64_t i = head; i-- > 0;) {
    weights[i] = std::pow(static_cast<double>(i + 1), -exponent);
    weight += weights[i];
  }
  const Tail tail(exponent, static_cast<double>(num_embeddings));
  const bool has_tail = num_embeddings > kHeadRanks;
  if (has_tail) weight += tail.weight();

  ReuseStatistics statistics;
  statistics.num_indices = num_indices;
  const double scale = num_indices / weight;
  for (std::int64_t i = 0; i < head; ++i) {
    add_rows(statistics, 1.0, poisson_reuse(scale * weights[i]));
  }
  if (has_tail) tail.add_reuse(scale, statistics);
  for (const double rows : statistics.rows) statistics.distinct_rows += rows;
  return statistics;
}

}  // namespace neuroshard
