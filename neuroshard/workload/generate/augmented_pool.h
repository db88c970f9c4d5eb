// The pool of tables that computation costs are collected from.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/workload/workload.h"

namespace neuroshard {

/// The dimensions of the augmented pool (Zha et al. 2023, section 3.2).
inline constexpr std::array<std::int64_t, 6> kPoolDims = {4, 8, 16, 32, 64, 128};

/// Every table of every workload at every dimension of kPoolDims, so that all column-wise pieces
/// occur; the table's own dimension does not matter. Named "workload/table/d16", dimensions in the
/// inner loop. The names are unique if the workloads' are.
[[nodiscard]] std::vector<Table> augmented_pool(std::span<const Workload> workloads);

}  // namespace neuroshard
