// Stands in for the CUDA backend where the build found no CUDA compiler.
#include "neuroshard/collect/compute/cuda/cuda_backend.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

[[noreturn]] void fail() {
  throw MachineError(
      "cuda: expected an executable built with CUDA, got one without: build where nvcc 12.8 or "
      "newer "
      "is found");
}

}  // namespace

ComputeBackendFactory cuda_backend(const CudaBackendOptions&) { fail(); }

std::vector<int> devices_of_process(const std::vector<int>&) { fail(); }

}  // namespace neuroshard
