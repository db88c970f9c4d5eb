// A collection of communication costs among the processes of one run of mpirun.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/collect/communication/communication_collector.h"

namespace neuroshard {

/// The memory that messages lie in.
enum class MessageMemory { host, gpu };

/// Measures the samples that the file does not have: between the hosts' memories with MPI, or
/// between the processes' GPUs with NCCL. Collective; MPI begins and ends in it. Returns the number
/// measured in process 0, nothing in the others. An error of one process ends all, with one
/// message.
std::optional<std::int64_t> collect_among_processes(const CommunicationCollection& collection,
                                                    MessageMemory memory);

}  // namespace neuroshard
