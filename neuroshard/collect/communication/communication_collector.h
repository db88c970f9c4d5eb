// Collects communication costs, measured or simulated, into a file that can be continued.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/communication/simgrid_simulation.h"
#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// What a file has: the two all-to-alls, or one of the collectives other than them.
enum class CollectedKind { all_to_all, all_reduce, partial_sums };

struct CommunicationCollection {
  CollectedKind kind = CollectedKind::all_to_all;
  CommunicationSamplingOptions sampling;
  int local_world_size = 1;
  std::string interconnect;  ///< its name; empty: the platform's, or none if measured
  std::int64_t num_samples = 1000;
  std::string path;
  int num_threads =
      0;  ///< of each process, that add up partial sums; <= 0: one per core it may use
  std::function<void(const CollectionProgress&)> on_progress;  ///< may be empty
};

/// Samples 0 .. num_samples - 1 that the file does not have, on a simulated cluster. `platform` as
/// in SimulationOptions. Returns the number simulated by this run. Throws InputError for partial
/// sums, which are memory work: a simulation of links does not have it.
std::int64_t simulate_communication_costs(const CommunicationCollection& collection,
                                          const std::string& platform);

/// The transport of the messages, and the hardware for the file's header (its hosts are added).
struct MeasuredTransport {
  Transport& transport;
  Json hardware;
};
/// Messages of MPI, between the hosts' memories.
[[nodiscard]] MeasuredTransport host_transport(MpiTransport& processes);

/// The same, measured. Collective; process 0 writes. Throws InputError in every process if their
/// options differ.
std::int64_t measure_communication_costs(const CommunicationCollection& collection,
                                         MpiTransport& processes,
                                         const MeasuredTransport& measured_on);

}  // namespace neuroshard
