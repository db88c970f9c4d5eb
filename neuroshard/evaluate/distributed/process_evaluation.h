// A plan's real iterations under mpirun, with its prediction: one process per device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/collect/compute/cuda/cuda_backend.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/evaluate/distributed/value_check.h"
#include "neuroshard/evaluate/iteration.h"

namespace neuroshard {

struct ProcessEvaluationOptions {
  ComputeBenchmarkOptions benchmark;  ///< num_threads 0: the process's share of its host's cores
  std::optional<CudaBackendOptions> cuda;  ///< if given, the GPUs of the processes instead
  std::uint64_t seed = 0;                  ///< of the batches
  std::string plan_sha256;                 ///< all processes must have read the same plan
};

struct ProcessEvaluation {
  PlanCost predicted;
  PlanIterations measured;
  bool oversubscribed = false;  ///< on CPUs: processes share cores
  std::string difference;       ///< as measurement_difference
};

/// Explains `oversubscribed` to the user.
inline constexpr const char* kOversubscribed =
    "processes share cores: measured times are longer than on cores of their own";

/// Collective; MPI begins and ends in it. `on_iteration` is called in process 0. The result is
/// process 0's; the others get nothing. An error of one process ends all, with one message. Throws
/// InputError for a plan with slices of rows or replicated tables on GPUs.
[[nodiscard]] std::optional<ProcessEvaluation> evaluate_among_processes(
    const Simulator& simulator, const ShardingPlan& plan, ProcessEvaluationOptions options,
    const std::function<void(int iterations)>& on_iteration = {});

/// Likewise: check_values, on CPUs. Tables may take as much memory as the benchmark's arena would.
[[nodiscard]] std::optional<ValueCheck> check_among_processes(const Task& task,
                                                              const ShardingPlan& plan,
                                                              ProcessEvaluationOptions options);

}  // namespace neuroshard
