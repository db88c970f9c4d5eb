// The median of noisy timings with its confidence interval, and when it is good enough.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace neuroshard {

struct MedianEstimate {
  double median = 0.0;
  /// Half the width of the 95 % confidence interval of the median, relative to the median.
  /// Infinite for fewer than 6 values: no two of them enclose the median with 95 %.
  double interval = 0.0;
};

/// From order statistics: no assumption on the distribution of the values. The ranks are those of
/// the binomial distribution with probability 1/2 (David and Nagaraja, Order Statistics, 7.1).
[[nodiscard]] MedianEstimate estimate_median(std::span<const double> values);

struct RepetitionOptions {
  double target_interval = 0.03;  ///< stop when the relative half-width is at most this
  int warm_ups = 2;               ///< runs that do not count
  int min_repetitions = 7;
  int max_repetitions = 60;
  double max_seconds = 3.0;  ///< stop after this long, once min_repetitions are done
};

/// Calls run() until the median of its results is known well enough or a limit is reached.
/// Returns the results that count.
[[nodiscard]] std::vector<double> repeat_until_stable(const std::function<double()>& run,
                                                      const RepetitionOptions& options);

}  // namespace neuroshard
