// Whether processes that run a plan compute what one device computes that has all tables whole.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/core/machine/parallel.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/task.h"
#include "neuroshard/evaluate/iteration.h"

namespace neuroshard {

/// Collective. Runs lookups, updates and all messages of the plan with real values: tables and
/// gradients that every process can compute, batches that all draw alike. Each process has its
/// pieces alone, drops the lookups of rows that a slice has not, adds up the partial sums of its
/// samples, sends gradients to all slices, and sums those of replicated tables over all. Compared
/// are the pooled outputs of its samples and, afterwards, the weights of its pieces and copies with
/// those of the whole tables on one device; with row-wise Adagrad, of which each column piece keeps
/// a state of its own, with those of the same columns on one device. Two iterations; with row-wise
/// Adagrad outputs are those of the first alone, as no single device has the states that slices of
/// different columns begin the second one with. Process 0 gets the result, nothing the others.
///
/// Each process also has the whole tables: throws InputError if they take more than `most_bytes`,
/// and for tables with several features; CollectiveInputError unless there are as many processes as
/// devices.
[[nodiscard]] std::optional<ValueCheck> check_values(const Task& task, const ShardingPlan& plan,
                                                     std::uint64_t seed, std::int64_t most_bytes,
                                                     MpiTransport& transport, ThreadPool& pool);

}  // namespace neuroshard
