// Timing of all-to-alls.
#include "neuroshard/collect/communication/all_to_all_benchmark.h"

#include <algorithm>

namespace neuroshard {

AllToAllBytes forward_bytes(const std::vector<std::int64_t>& columns, std::int64_t batch_size,
                            DataType data_type, int rank) {
  const auto world_size = static_cast<int>(columns.size());
  const std::int64_t element = element_bytes(data_type);
  AllToAllBytes bytes;
  for (int peer = 0; peer < world_size; ++peer) {
    bytes.sent.push_back(columns[rank] * local_batch_size(batch_size, world_size, peer) * element);
    bytes.received.push_back(columns[peer] * local_batch_size(batch_size, world_size, rank) *
                             element);
  }
  return bytes;
}

namespace {

/// Of one repetition, in process 0.
struct Times {
  std::vector<double> forward_ms;
  std::vector<double> backward_ms;
};

Times run_once(Transport& transport, const AllToAllBytes& bytes, double start_ms) {
  transport.barrier();
  double entered = transport.now_ms();
  transport.exchange(bytes.received, bytes.sent);
  const double backward_ms = transport.now_ms() - entered;
  transport.barrier();
  transport.wait_ms(start_ms);
  entered = transport.now_ms();
  transport.exchange(bytes.sent, bytes.received);
  const double forward_ms = transport.now_ms() - entered;
  return {transport.gather(forward_ms), transport.gather(backward_ms)};
}

/// The devices' quantiles over the repetitions.
std::vector<double> quantiles(const std::vector<std::vector<double>>& repetitions,
                              double quantile) {
  std::vector<double> result(repetitions.front().size());
  for (std::size_t device = 0; device < result.size(); ++device) {
    std::vector<double> values;
    for (const std::vector<double>& times : repetitions) values.push_back(times[device]);
    result[device] = estimate_quantile(values, quantile).value;
  }
  return result;
}

}  // namespace

AllToAllMeasurement measure_all_to_alls(Transport& transport, const CommunicationCase& sample,
                                        std::int64_t batch_size, DataType data_type,
                                        const RepetitionOptions& repetitions) {
  const int rank = transport.rank();
  const AllToAllBytes bytes = forward_bytes(sample.columns, batch_size, data_type, rank);
  RepeatedTiming slowest(repetitions);
  std::vector<std::vector<double>> forward;
  std::vector<std::vector<double>> backward;
  bool again = true;
  while (again) {
    const double begun = transport.now_ms();
    Times times = run_once(transport, bytes, sample.start_ms[rank]);
    if (rank == 0) {
      double longest = 0.0;
      for (std::size_t d = 0; d < times.forward_ms.size(); ++d) {
        longest = std::max(longest, times.forward_ms[d] + times.backward_ms[d]);
      }
      if (!slowest.warming_up()) {
        forward.push_back(std::move(times.forward_ms));
        backward.push_back(std::move(times.backward_ms));
      }
      slowest.add(longest, (transport.now_ms() - begun) * 1e-3);
      again = !slowest.done();
    }
    again = transport.broadcast(again);
  }
  if (rank != 0) return {};
  return {quantiles(forward, repetitions.quantile), quantiles(backward, repetitions.quantile),
          static_cast<int>(forward.size()), slowest.estimate().interval};
}

CollectiveMeasurement measure_collective(Transport& transport,
                                         const std::function<void()>& collective,
                                         const RepetitionOptions& repetitions) {
  RepeatedTiming slowest(repetitions);
  std::vector<std::vector<double>> all;
  for (bool again = true; again;) {
    transport.barrier();
    const double begun = transport.now_ms();
    collective();
    std::vector<double> ms = transport.gather(transport.now_ms() - begun);
    if (transport.rank() == 0) {
      const double longest = *std::max_element(ms.begin(), ms.end());
      if (!slowest.warming_up()) all.push_back(std::move(ms));
      slowest.add(longest, (transport.now_ms() - begun) * 1e-3);
      again = !slowest.done();
    }
    again = transport.broadcast(again);
  }
  if (transport.rank() != 0) return {};
  return {quantiles(all, repetitions.quantile), static_cast<int>(all.size()),
          slowest.estimate().interval};
}

IterationTimes time_iteration(Transport& transport, const IterationCase& iteration,
                              std::int64_t batch_size, DataType data_type) {
  const int rank = transport.rank();
  const AllToAllBytes bytes = forward_bytes(iteration.columns, batch_size, data_type, rank);
  transport.barrier();
  const double begun = transport.now_ms();
  transport.exchange(bytes.received, bytes.sent);
  const double received = transport.now_ms();
  if (iteration.all_reduce_bytes > 0) transport.all_reduce(iteration.all_reduce_bytes);
  const double reduced = transport.now_ms();
  transport.wait_ms(iteration.compute_ms[rank]);
  const double entered = transport.now_ms();
  transport.exchange(bytes.sent, bytes.received);
  transport.wait_ms(iteration.partial_sums_ms);
  const double forward_ms = transport.now_ms() - entered;
  IterationTimes times;
  times.backward_ms = transport.gather(received - begun);
  times.all_reduce_ms = transport.gather(reduced - received);
  times.forward_ms = transport.gather(forward_ms);
  return times;
}

}  // namespace neuroshard
