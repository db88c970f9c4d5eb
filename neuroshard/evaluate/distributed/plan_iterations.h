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

struct PlanIterationOptions {
  RepetitionOptions repetitions;
  std::uint64_t seed = 0;  ///< of the batches
  int num_threads = 1;     ///< of each process, for what is done outside of the backend
};

/// Collective. Runs iterations of the plan until the slowest device's total is known well enough.
/// An iteration begins after a barrier, when the gradients leave for the tables' devices, and ends
/// when the next batch's pooled embeddings have arrived and their partial sums are added up: the
/// order in which the cost is defined. The gradients of replicated tables, of which each process
/// looks up its own share of the batch, are summed by an all-reduce before the update. A slice of
/// rows has the lookups of its rows in a batch of the whole table. Then, apart from the iteration,
/// the indices of a batch are sent. Messages have the right size and arbitrary content. Process 0
/// gets the result; that of the others is empty. Throws InputError unless there are as many
/// processes as devices.
[[nodiscard]] PlanIterations run_plan_iterations(
    const Task& task, const ShardingPlan& plan, ComputeBackend& backend,
    const PlanIterationOptions& options, Transport& transport,
    const std::function<void(int iterations)>& on_iteration = {});

/// Throws CollectiveInputError unless there are as many processes as devices.
void require_a_process_for_each_device(const Task& task, int processes);

}  // namespace neuroshard
