// The communication benchmark on a simulated cluster (SimGrid).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "neuroshard/collect/communication/all_to_all_benchmark.h"
#include "neuroshard/collect/communication/communication_case.h"
#include "neuroshard/collect/communication/platform.h"

namespace neuroshard {

struct SimulationOptions {
  std::string platform;  ///< name of a preset, or a SimGrid platform file (.xml)
  int world_size = 2;    ///< processes, one per device
  int local_world_size =
      1;  ///< devices per host of a preset; of a file its hosts by name, 2 before 10
  std::int64_t batch_size = 65'536;
  DataType data_type = DataType::fp32;
};

using NumberedCase = std::pair<std::int64_t, CommunicationCase>;
using NumberedIteration = std::pair<std::int64_t, IterationCase>;

/// Runs measure_all_to_alls in one simulated process per device, on the cases that `next` returns
/// one after the other, and passes on each result. Messages have no content. SimGrid shares the
/// links among the messages under way fairly (max-min, model CM02 without TCP's window); it does
/// not model contention inside switches, memory and processors, nor chance.
///
/// SimGrid exists once per process: a second call of any of these throws std::logic_error.
/// Throws InputError if the platform is unknown, malformed, has fewer hosts than devices, links
/// beyond the limits of core/interconnect.h or hosts without speed, or if messages never arrive.
void simulate_all_to_alls(
    const SimulationOptions& options, const std::function<std::optional<NumberedCase>()>& next,
    const std::function<void(std::int64_t id, const AllToAllMeasurement&)>& on_done);

using NumberedBytes = std::pair<std::int64_t, std::int64_t>;

/// The same with all-reduces of these numbers of bytes, by the algorithms that libraries take:
/// below 10,000 bytes recursive doubling, from there on a ring, as Open MPI (coll_tuned's fixed
/// decision, up to 4.0). On hosts of several devices rings of the devices of a host reduce and
/// gather, and between them rings of the devices of the same place in their hosts sum up, as NCCL's
/// rings use every card. Additions take no time.
void simulate_all_reduces(
    const SimulationOptions& options, const std::function<std::optional<NumberedBytes>()>& next,
    const std::function<void(std::int64_t id, const CollectiveMeasurement&)>& on_done);

/// The same with time_iteration.
void simulate_iterations(
    const SimulationOptions& options, const std::function<std::optional<NumberedIteration>()>& next,
    const std::function<void(std::int64_t id, const IterationTimes&)>& on_done);

}  // namespace neuroshard
