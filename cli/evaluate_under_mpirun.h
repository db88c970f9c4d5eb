// `mpirun neuroshard evaluate`: a plan's real iterations beside its prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/collect/compute/cuda/cuda_backend.h"
#include "neuroshard/cost/simulator.h"

namespace neuroshard::cli {

struct DistributedEvaluation {
  ComputeBenchmarkOptions benchmark;  ///< num_threads 0: the process's share of its host's cores
  std::optional<CudaBackendOptions> cuda;  ///< if given, the GPUs of the processes instead
  std::uint64_t seed = 0;
  std::string plan_sha256;  ///< all processes must have read the same
  bool json = false;
};

/// Process 0 prints.
void evaluate_under_mpirun(const Simulator& simulator, const ShardingPlan& plan,
                           DistributedEvaluation options);

}  // namespace neuroshard::cli
