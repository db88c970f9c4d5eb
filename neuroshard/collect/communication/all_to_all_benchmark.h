// The two all-to-alls of one training iteration, timed: the same code on every transport.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "neuroshard/collect/communication/communication_case.h"
#include "neuroshard/collect/communication/transport.h"
#include "neuroshard/collect/compute/repeated_timing.h"

namespace neuroshard {

/// The result of a measurement, in process 0; empty in the others.
struct AllToAllMeasurement {
  std::vector<double> forward_ms;   ///< of each device, from its own entry to its own end
  std::vector<double> backward_ms;  ///< likewise; all enter together
  int repetitions = 0;
  double interval = 0.0;  ///< relative half-width of the 95 % interval of the slowest device's sum
};

/// Bytes that a device sends to and receives from each other device in the forward all-to-all: it
/// sends its columns for their samples and receives theirs for its own. In the backward one,
/// gradients travel the other way.
struct AllToAllBytes {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
};
[[nodiscard]] AllToAllBytes forward_bytes(const std::vector<std::int64_t>& columns,
                                          std::int64_t batch_size, DataType data_type, int rank);

/// Collective: repeats both all-to-alls until the time of the device that takes longest is known
/// well enough. Each repetition begins after a barrier; in the forward one, device d enters
/// start_ms[d] later.
[[nodiscard]] AllToAllMeasurement measure_all_to_alls(Transport& transport,
                                                      const CommunicationCase& sample,
                                                      std::int64_t batch_size, DataType data_type,
                                                      const RepetitionOptions& repetitions);

/// What each device took, in process 0; empty in the others.
struct CollectiveMeasurement {
  std::vector<double> ms;  ///< of each device, from its entry to its end; all enter together
  int repetitions = 0;
  double interval = 0.0;  ///< relative half-width of the 95 % interval of the slowest device's time
};

/// Collective: repeats `collective`, which all processes enter after a barrier, until the time of
/// the slowest is known well enough.
[[nodiscard]] CollectiveMeasurement measure_collective(Transport& transport,
                                                       const std::function<void()>& collective,
                                                       const RepetitionOptions& repetitions);

/// One training iteration as the cost of a plan defines it.
struct IterationCase {
  std::vector<std::int64_t> columns;  ///< on each device
  std::vector<double> compute_ms;     ///< of each device: update and next lookup
  std::int64_t all_reduce_bytes = 0;  ///< of the gradients of replicated tables, on each device
  double partial_sums_ms = 0.0;       ///< of each device: adding up, after the forward all-to-all
};

/// The times of an iteration, in process 0; empty in the others.
struct IterationTimes {
  std::vector<double> backward_ms;  ///< of each device; all enter together
  /// From its own entry, when its computation ends, to the end of the addition of partial sums.
  std::vector<double> forward_ms;
  std::vector<double> all_reduce_ms;
};

/// Collective, after one barrier: the gradients' all-to-all, the all-reduce, a wait as long as the
/// computation, the all-to-all of the pooled embeddings, and a wait as long as the additions.
[[nodiscard]] IterationTimes time_iteration(Transport& transport, const IterationCase& iteration,
                                            std::int64_t batch_size, DataType data_type);

}  // namespace neuroshard
