// Which cores each process of an mpirun works on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/communication/mpi_transport.h"

namespace neuroshard {

/// Where a process may run.
struct ProcessPlace {
  std::string host;
  std::vector<int> cores;  ///< rising, at least one
};

/// The cores of a process among the others of its host.
struct CoreShare {
  std::vector<int> cores;       ///< of its own, at least one
  bool oversubscribed = false;  ///< some process of some host shares a core with another
};

/// The share of process `rank`. mpirun binds processes to a core, to a socket that several of them
/// have, or not at all: processes that may run on the same cores divide these among themselves, as
/// many each as all can have.
[[nodiscard]] CoreShare core_share(std::span<const ProcessPlace> processes, int rank);

/// Collective: binds each process to its share. Before any thread pool is made.
CoreShare take_share_of_cores(MpiTransport& transport);

}  // namespace neuroshard
