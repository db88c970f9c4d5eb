// The rank of this process among those that mpirun started: processes that measure independently
// need nothing else from MPI.
#pragma once

#include <string>
#include <vector>

namespace neuroshard {

struct ProcessGroup {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among those of this host
  int local_size = 1;
};

/// From what mpirun (Open MPI) leaves in the environment; one process if it left nothing.
[[nodiscard]] ProcessGroup process_group();

/// "costs.jsonl" -> "costs.rank-3.jsonl" for process 3 of several; the path itself for one.
[[nodiscard]] std::string path_of_rank(const std::string& path, const ProcessGroup& group);

/// Devices local_rank, local_rank + local_size, ... of `count`.
[[nodiscard]] std::vector<int> share_of_devices(const ProcessGroup& group, int count);

}  // namespace neuroshard
