// Workloads: the tables of one recommendation model with its training settings, by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/core/table.h"

namespace neuroshard {

struct Workload {
  std::string name{};
  std::string source{};  ///< who published it, and where
  /// How likely its tables' rows are, in words: as published, and what is assumed where that is not
  /// enough. The tables' `index_distribution` says the same in numbers.
  std::string accesses{};
  std::int64_t batch_size = 0;
  Optimizer optimizer = Optimizer::sgd;
  std::vector<Table> tables{};  ///< names unique
};

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
