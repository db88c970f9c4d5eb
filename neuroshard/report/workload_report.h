// Workloads as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuroshard/workload/workload.h"

namespace neuroshard {

[[nodiscard]] std::string workloads_table(const std::vector<WorkloadInfo>& workloads);

/// Sizes and sums, and how often a batch of this size hits the same rows.
[[nodiscard]] std::string workload_text(const Workload& workload, std::int64_t batch_size);

/// A line for each table.
[[nodiscard]] std::string workload_tables_table(const Workload& workload);

}  // namespace neuroshard
