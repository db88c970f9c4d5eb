// Medians of noisy timings.
#include "neuroshard/collect/compute/stable_median.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace neuroshard {

namespace {

/// The largest k so that the k-th smallest and the k-th largest of n values enclose the median with
/// a probability of at least 95 %; 0 if there is none.
std::size_t enclosing_rank(std::size_t n) {
  double probability = std::exp2(-static_cast<double>(n));  // of i values below the median
  double below = probability;                               // P(at most i values below)
  std::size_t rank = 0;
  for (std::size_t i = 0; i < n && 2.0 * below <= 0.05; ++i) {
    rank = i + 1;
    probability *= static_cast<double>(n - i) / static_cast<double>(i + 1);
    below += probability;
  }
  return rank;
}

}  // namespace

MedianEstimate estimate_median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  if (n == 0) return {0.0, std::numeric_limits<double>::infinity()};
  const double median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
  const std::size_t rank = enclosing_rank(n);
  if (rank == 0) return {median, std::numeric_limits<double>::infinity()};
  return {median, 0.5 * (sorted[n - rank] - sorted[rank - 1]) / median};
}

std::vector<double> repeat_until_stable(const std::function<double()>& run,
                                        const RepetitionOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.warm_ups; ++i) run();
  std::vector<double> values;
  while (static_cast<int>(values.size()) < options.max_repetitions) {
    values.push_back(run());
    if (static_cast<int>(values.size()) < options.min_repetitions) continue;
    if (estimate_median(values).interval <= options.target_interval) break;
    if (std::chrono::duration<double>(Clock::now() - start).count() > options.max_seconds) break;
  }
  return values;
}

}  // namespace neuroshard
