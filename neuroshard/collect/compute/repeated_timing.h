// A quantile of noisy timings with its confidence interval, and the rule for when to stop.
#pragma once

#include <span>
#include <vector>

namespace neuroshard {

struct QuantileEstimate {
  double value = 0.0;  ///< interpolated between the two nearest order statistics
  /// Half the width of the 95 % confidence interval, relative to `value`. Infinite for too few
  /// values: no two of them enclose the quantile with 95 %.
  double interval = 0.0;
};

/// From order statistics: no assumption on the distribution of the values. The ranks are those of
/// the binomial distribution (David and Nagaraja, Order Statistics, 7.1).
[[nodiscard]] QuantileEstimate estimate_quantile(std::span<const double> values, double quantile);

struct RepetitionOptions {
  /// The first quartile is the median of the faster half of the runs. What other programs on the
  /// machine take away only ever makes a run slower, and on a shared machine does so for seconds
  /// on end: the faster half repeats about twice as well as all runs
  /// (docs/experiments/operator.md).
  double quantile = 0.25;
  double target_interval = 0.03;  ///< stop when the relative half-width is at most this
  int warm_ups = 1;               ///< runs that do not count
  int min_repetitions = 13;       ///< the fewest that give a first quartile an interval
  int max_repetitions = 16;
  double max_seconds = 5.0;  ///< of running; stop after this, once min_repetitions are done
  /// Above 0: this many suffice after max_seconds. Long runs even out what disturbs them by
  /// themselves.
  int hurried_repetitions = 0;
  /// Repetitions after min_repetitions between two checks of whether they suffice.
  int further_repetitions = 1;
};

/// Repetitions for sets whose times differ by orders of magnitude: the longest, which even out what
/// disturbs them by themselves, are repeated less often, the shortest more often.
[[nodiscard]] inline RepetitionOptions coverage_repetitions(double quantile) {
  return {
      .quantile = quantile, .max_repetitions = 32, .max_seconds = 2.5, .hurried_repetitions = 5};
}

/// Repetitions for a GPU that nobody else uses: its times scatter by less than a percent.
[[nodiscard]] inline RepetitionOptions gpu_repetitions(double quantile = 0.5) {
  return {.quantile = quantile,
          .target_interval = 0.02,
          .min_repetitions = 6,
          .max_repetitions = 21,
          .max_seconds = 1.0,
          .further_repetitions = 3};
}

/// Repetitions for all-reduces and for additions of partial sums, which take from microseconds on:
/// many, as the system disturbs short runs most.
[[nodiscard]] inline RepetitionOptions collective_repetitions() {
  return {.max_repetitions = 300, .max_seconds = 1.0};
}

/// The timings of one task that is run repeatedly.
class RepeatedTiming {
 public:
  explicit RepeatedTiming(const RepetitionOptions& options) : options_(options) {}

  /// Adds the `value` of a run that took `seconds` in all, including the part that was not timed.
  void add(double value, double seconds);
  /// True once the quantile is known well enough or a limit is reached.
  [[nodiscard]] bool done() const;
  /// Runs to add before the next call of `done`: at first the minimum.
  [[nodiscard]] int runs_until_next_look() const;
  /// Seconds that the runs so far and the fewest that are left take together, where a run takes
  /// `usual_seconds` as long as there is none.
  [[nodiscard]] double expected_seconds(double usual_seconds) const;
  /// Of running so far.
  [[nodiscard]] double seconds() const { return seconds_; }
  /// True where time is over and the runs suffice: a few, of sets that may be hurried.
  [[nodiscard]] bool suffices_in_a_hurry() const;
  /// True while runs do not count.
  [[nodiscard]] bool warming_up() const { return runs_ < options_.warm_ups; }
  /// Those that count.
  [[nodiscard]] std::span<const double> values() const { return values_; }
  [[nodiscard]] QuantileEstimate estimate() const {
    return estimate_quantile(values_, options_.quantile);
  }
  /// Runs, warm-ups among them, after which it is done at the soonest, in a hurry.
  [[nodiscard]] int fewest_runs() const {
    return options_.warm_ups + fewest_repetitions_in_a_hurry();
  }

 private:
  [[nodiscard]] int fewest_repetitions_in_a_hurry() const;

  RepetitionOptions options_;
  std::vector<double> values_;
  int runs_ = 0;
  double seconds_ = 0.0;
};

}  // namespace neuroshard
