// The one loop that measures sets of pieces, on whatever backend.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "neuroshard/collect/compute/compute_backend.h"

namespace neuroshard {

/// How sets are measured one among the others.
struct MeasuringOptions {
  int in_flight = 1;  ///< sets that alternate
  /// Sets begin as long as the fewest repetitions of all that have begun can be done by then, as
  /// far as the times so far tell, round by round; after it, a set is done as soon as the fewest of
  /// a hurry are.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  /// Called after every repetition of all sets in flight; may be empty.
  std::function<void()> on_round{};
  /// Sets that every device runs next to those in flight, in every round, as long as it measures:
  /// their times tell how fast the device was while another set was measured
  /// (ComputeMeasurement::reference_ms).
  std::span<const PieceSet> reference_sets{};
};

/// Measures the sets that `next` gives until it gives none: repetitions of forward and backward,
/// until the quantile of their sum is known well enough (RepeatedTiming). Deterministic in all but
/// the times.
///
/// The options' `in_flight` sets alternate, as far as a device can have them ready: each runs
/// forward once, then each backward once, in an order drawn anew every time. A machine shared with
/// others changes its speed for seconds on end, so repetitions far apart tell more than consecutive
/// ones, and many sets disturb each other's caches at no extra cost. Where they touch less than the
/// device asks for between two passes of one set, the device reads other memory for the rest.
///
/// Several devices measure at the same time, each in a thread of its own; one measures in the
/// calling thread. `on_done` is called as each set is done, in no particular order; no
/// function is called by two threads at once. A set for which a device has no memory is a result
/// with a `failure`. Any other failure, or an exception of `next` or `on_done`, is thrown once the
/// other devices have finished the sets that they had begun; MachineError if a device cannot run
/// the reference sets. With a deadline, no more than a few
/// dozen sets begin before the first times are known.
void measure_sets(ComputeBackend& backend, const MeasuringOptions& options,
                  const std::function<std::optional<PieceSet>()>& next,
                  const std::function<void(const PieceSetResult&)>& on_done);

/// The same without a deadline.
inline void measure_sets(ComputeBackend& backend, int in_flight,
                         const std::function<std::optional<PieceSet>()>& next,
                         const std::function<void(const PieceSetResult&)>& on_done) {
  measure_sets(backend, MeasuringOptions{.in_flight = in_flight}, next, on_done);
}

}  // namespace neuroshard
