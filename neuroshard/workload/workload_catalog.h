// All workloads that can be asked for by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/workload/workload.h"

namespace neuroshard {

struct WorkloadInfo {
  std::string name{};
  std::string source{};
  int num_tables = 0;
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  bool is_seeded = false;  ///< generated: tables depend on the seed
};

/// The published workloads, then the generated ones.
[[nodiscard]] std::vector<WorkloadInfo> list_workloads();

/// The workload of this name; `seed` matters to seeded ones only. Throws InputError, listing the
/// known names, for any other name.
[[nodiscard]] Workload find_workload(const std::string& name, std::uint64_t seed);

}  // namespace neuroshard
