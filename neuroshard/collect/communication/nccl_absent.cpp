// Stands in for NCCL where the build had no CUDA or found no NCCL.
#include "neuroshard/collect/communication/nccl_transport.h"
#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

[[noreturn]] void fail() {
  throw MachineError(
      "nccl: expected an executable built with NCCL, got one without: build where CUDA and nccl.h "
      "are found (NCCL_INCLUDE_DIR, NCCL_LIBRARY)");
}

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(MpiTransport&, int) { fail(); }

std::string nccl_version() { fail(); }

}  // namespace neuroshard
