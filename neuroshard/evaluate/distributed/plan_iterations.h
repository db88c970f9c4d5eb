// A plan's real iterations: one process per device, lookups, updates and both all-to-alls.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/sharding_plan.h"

namespace neuroshard {

/// Of one device; all times in milliseconds.
struct DeviceIteration {
  double backward_comm_ms = 0.0;  ///< gradients come in; all devices enter together
  double update_ms = 0.0;         ///< backward pass with optimizer
  double lookup_ms = 0.0;         ///< forward pass of the next batch
  double forward_comm_ms = 0.0;   ///< from this device's own entry, waiting included

  [[nodiscard]] double compute_ms() const { return update_ms + lookup_ms; }
  [[nodiscard]] double total_ms() const {
    return backward_comm_ms + update_ms + lookup_ms + forward_comm_ms;
  }
};

/// What process 0 knows in the end; elsewhere empty.
struct PlanIterations {
  std::vector<DeviceIteration> devices;  ///< quantiles over the iterations
  double cost_ms = 0.0;                  ///< quantile of the slowest device's total
  int iterations = 0;
  double interval = 0.0;  ///< relative half-width of the 95 % interval of the cost
};

/// Collective. Runs iterations of the plan until the slowest device's total is known well enough.
/// An iteration begins behind a barrier where the gradients leave for the tables' devices and ends
/// where the next batch's pooled embeddings have arrived: the order in which the cost is defined.
/// What is exchanged has the right size and no meaning.
/// Throws InputError unless there are as many processes as devices.
[[nodiscard]] PlanIterations run_plan_iterations(
    const Task& task, const ShardingPlan& plan, ComputeBackend& backend,
    const RepetitionOptions& repetitions, std::uint64_t seed, Transport& transport,
    const std::function<void(int iterations)>& on_iteration = {});

/// Where a process computes beside the others of its host.
struct ProcessShare {
  int num_threads = 1;
  bool oversubscribed = false;  ///< some process of some host shares a core with another
};

/// Collective: gives each process of a host its own cores, as many as each can have, unless mpirun
/// has bound it to some already. Before any thread pool is made.
ProcessShare take_share_of_cores(MpiTransport& transport);

}  // namespace neuroshard
