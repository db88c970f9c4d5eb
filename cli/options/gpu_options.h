// The options of subcommands that measure computation on CPUs or GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "neuroshard/collect/compute/cpu/compute_benchmark.h"
#include "neuroshard/collect/compute/cuda/cuda_backend.h"

namespace neuroshard::cli {

struct BackendOptions {
  std::string backend = "cpu";
  std::vector<int> gpus;
  std::optional<double> quantile;
  ComputeBenchmarkOptions cpu;

  [[nodiscard]] bool on_gpus() const { return backend == "cuda"; }
};

/// Adds --backend and --gpus; returns the first.
CLI::Option* add_backend_options(CLI::App& command, BackendOptions& options);
/// Adds --threads.
CLI::Option* add_thread_option(CLI::App& command, BackendOptions& options);

/// The options for GPUs, with memory and repetitions as in `options.cpu`. Throws InputError for
/// options of the other backend.
[[nodiscard]] CudaBackendOptions cuda_options(const BackendOptions& options);

/// Those options if GPUs are the chosen backend. Throws InputError for options of the other.
[[nodiscard]] std::optional<CudaBackendOptions> chosen_gpus(const BackendOptions& options);

/// The chosen backend; throws as cuda_backend.
[[nodiscard]] ComputeBackendFactory chosen_backend(const BackendOptions& options, int in_flight);

}  // namespace neuroshard::cli
