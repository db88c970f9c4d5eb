// Workloads like those of Meta's public embedding lookup data sets, of which only aggregates over
// all tables can be had here.
#pragma once

#include <cstdint>

#include "neuroshard/workload/workload.h"

namespace neuroshard {

/// Embedding dimension of generated tables. The data sets give none; tasks and collectors choose
/// dimensions themselves.
inline constexpr std::int64_t kGeneratedEmbeddingDim = 128;

inline constexpr const char* kDlrm2021 = "dlrm-2021";
inline constexpr const char* kDlrm2022 = "dlrm-2022";

/// 856 tables, batch size 65,536; for any seed with the aggregates of fbgemm_t856_bs65536.pt at
/// that batch size: the mean pooling factor and the expected number of distinct rows within 1 %,
/// every share of rows and of lookups by reuse bin within 0.005. The seed decides which table has
/// what: pooling factors are skewed (many near 1 to 5, some up to 200), and from table to table
/// hotness varies from a few thousand rows that are hit all the time to millions that rarely are.
/// Tables have `access_classes`, so they are valid for any batch size.
[[nodiscard]] Workload dlrm_2021(std::uint64_t seed);

/// As `dlrm_2021`: 788 tables, batch size 131,072, like fbgemm_t788_bs131072_0.pt.
[[nodiscard]] Workload dlrm_2022(std::uint64_t seed);

}  // namespace neuroshard
