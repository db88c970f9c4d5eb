// A workload whose tables cover the whole space of embedding tables, not those of one model: what a
// universal cost model is trained on.
#pragma once

#include <cstdint>

#include "neuroshard/workload/workload.h"

namespace neuroshard {

inline constexpr const char* kCoverage = "coverage";

/// 384 tables, spread evenly (by a low-discrepancy sequence that the seed shifts) over rows from 1
/// to 10^9 and pooling factors from 0.01 to 500, both on logarithmic scales; every fourth table is
/// fp16. Rows are used uniformly, by a power law of exponent 0.3 to 1.6, in classes of rates, with
/// one row that has 5 to 90 % of the lookups, or so that all distinct rows lie in one bin of the
/// histogram. Every pooling factor of 1 or more is, for every other table, a whole number.
[[nodiscard]] Workload coverage_workload(std::uint64_t seed);

}  // namespace neuroshard
