// A plan's real iterations: one process per device, lookups, updates and both all-to-alls.
#pragma once

#include <cstdint>
#include <functional>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/repeated_timing.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/evaluate/iteration.h"

namespace neuroshard {

/// Collective. Runs iterations of the plan until the slowest device's total is known well enough.
/// An iteration begins after a barrier, when the gradients leave for the tables' devices, and ends
/// when the next batch's pooled embeddings have arrived: the order in which the cost is defined.
/// The messages have the right size and arbitrary content. Process 0 gets the result; that of the
/// others is empty. Throws InputError unless there are as many processes as devices, and for a plan
/// with slices of rows or replicated tables.
[[nodiscard]] PlanIterations run_plan_iterations(
    const Task& task, const ShardingPlan& plan, ComputeBackend& backend,
    const RepetitionOptions& repetitions, std::uint64_t seed, Transport& transport,
    const std::function<void(int iterations)>& on_iteration = {});

/// The cores of a process among the others of its host.
struct ProcessShare {
  int num_threads = 1;
  bool oversubscribed = false;  ///< some process of some host shares a core with another
};

/// Collective: gives each process of a host its own cores, as many as each can have, unless mpirun
/// has bound it to some already. Before any thread pool is made.
ProcessShare take_share_of_cores(MpiTransport& transport);

}  // namespace neuroshard
