// The communication benchmark's transport between GPUs: NCCL sends, device events time.
#pragma once

#include <memory>
#include <string>

#include "neuroshard/collect/communication/mpi_transport.h"
#include "neuroshard/collect/communication/transport.h"

namespace neuroshard {

/// One GPU per process of a run, whose processes must outlive it. Messages lie in device memory,
/// and are all one group of NCCL's; its clock is the device's stream, and waiting is a kernel. To
/// read the clock, the host waits for the stream: an exchange after that begins once the host has
/// woken up and launched it, and both are in the time that is measured. Collective. Throws
/// MachineError where this executable has no NCCL, or NCCL or the device fail.
[[nodiscard]] std::unique_ptr<Transport> make_nccl_transport(MpiTransport& processes, int device);

/// "2.27.3". Throws as make_nccl_transport.
[[nodiscard]] std::string nccl_version();

}  // namespace neuroshard
