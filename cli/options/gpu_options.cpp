// Backends on CPUs or GPUs from the command line's options.
#include "cli/options/gpu_options.h"

#include "neuroshard/core/error.h"

namespace neuroshard::cli {

CLI::Option* add_backend_options(CLI::App& command, BackendOptions& options) {
  CLI::Option* backend =
      command.add_option("--backend", options.backend, "Where to measure: cpu or cuda")
          ->check(one_of({"cpu", "cuda"}))
          ->capture_default_str();
  command
      .add_option("--gpus", options.gpus,
                  "With cuda: ids of the devices, which measure in parallel; default all. Under "
                  "mpirun each process takes its share of them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(integer_between(0, 1023));
  return backend;
}

CLI::Option* add_thread_option(CLI::App& command, BackendOptions& options) {
  return command
      .add_option("--threads", options.cpu.num_threads,
                  "With cpu: number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
}

CudaBackendOptions cuda_options(const BackendOptions& options) {
  if (options.cpu.num_threads != 0) {
    throw InputError("--threads needs --backend cpu, got cuda");
  }
  CudaBackendOptions cuda;
  cuda.devices = options.gpus;
  cuda.arena_bytes = options.cpu.arena_bytes;
  cuda.data_type = options.cpu.data_type;
  if (options.quantile) cuda.repetitions.quantile = *options.quantile;
  return cuda;
}

std::optional<CudaBackendOptions> chosen_gpus(const BackendOptions& options) {
  if (options.on_gpus()) return cuda_options(options);
  if (!options.gpus.empty()) throw InputError("--gpus needs --backend cuda, got cpu");
  return std::nullopt;
}

ComputeBackendFactory chosen_backend(const BackendOptions& options, int in_flight) {
  if (std::optional<CudaBackendOptions> cuda = chosen_gpus(options)) {
    cuda->devices = devices_of_process(cuda->devices);
    return cuda_backend(*cuda);
  }
  ComputeBenchmarkOptions cpu = options.cpu;
  if (options.quantile) cpu.repetitions.quantile = *options.quantile;
  return cpu_backend(cpu, in_flight);
}

}  // namespace neuroshard::cli
