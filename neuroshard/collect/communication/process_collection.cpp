// The transport of a run of mpirun, and the collection over it.
#include "neuroshard/collect/communication/process_collection.h"

#include <memory>
#include <string>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/communication/nccl_transport.h"
#include "neuroshard/collect/compute/cuda/cuda_backend.h"

namespace neuroshard {

namespace {

std::int64_t measure_between_gpus(const CommunicationCollection& collection,
                                  MpiTransport& processes) {
  // In this order, so that an executable without NCCL reports that first.
  const std::string version = nccl_version();
  if (collection.kind == CollectedKind::partial_sums) {
    throw CollectiveInputError("--kind",
                               "all-to-all or all-reduce with nccl, as partial sums are "
                               "added up in the memory of hosts",
                               "partial-sums");
  }
  const int device = devices_of_process().front();
  const std::unique_ptr<Transport> network = make_nccl_transport(processes, device);
  Json hardware = cuda_backend({.devices = {device}}).description.hardware;
  hardware.set("nccl", version);
  return measure_communication_costs(collection, processes, {*network, hardware});
}

}  // namespace

std::optional<std::int64_t> collect_among_processes(const CommunicationCollection& collection,
                                                    MessageMemory memory) {
  MpiTransport processes;
  try {
    const std::int64_t measured =
        memory == MessageMemory::gpu
            ? measure_between_gpus(collection, processes)
            : measure_communication_costs(collection, processes, host_transport(processes));
    if (processes.rank() != 0) return std::nullopt;
    return measured;
  } catch (const std::exception& error) {
    processes.end_run_with(error);
    throw;
  }
}

}  // namespace neuroshard
