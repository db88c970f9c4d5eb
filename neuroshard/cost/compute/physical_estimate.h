// The physical estimate that bounds a computation cost network: a weighted sum of the work.
#pragma once

#include <span>
#include <vector>

namespace neuroshard {

/// What a set of pieces costs if every line, lookup and launch has a price of its own:
///   estimate = offset_ms + sum over pieces, sum over terms of weights_ms[term] * work[term].
/// Fitted to measured costs with no weight below 0 (train/compute/estimate_fit.h), so it is
/// positive and grows with the work, far outside of what was measured too.
struct PhysicalEstimate {
  double offset_ms = 0.0;          ///< of running anything at all, above 0
  std::vector<double> weights_ms;  ///< one per work term (cost/compute/piece_work.h), >= 0

  /// A piece's part [ms], without the offset; above 0 if the first term, the piece itself, has a
  /// weight above 0.
  [[nodiscard]] double piece_ms(std::span<const double> terms) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < terms.size(); ++i) sum += weights_ms[i] * terms[i];
    return sum;
  }
};

}  // namespace neuroshard
