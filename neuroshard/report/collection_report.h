// What came of collecting costs: a line of progress and one in the end.
#pragma once

#include <cstdint>
#include <string>

#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/io/compute_costs_merge.h"

namespace neuroshard {

/// "12 of 100 samples, 3.00 s left"; `what` is what is counted.
[[nodiscard]] std::string collection_progress_text(const CollectionProgress& progress,
                                                   const std::string& what = "samples");

/// "costs.jsonl: 1 sample measured".
[[nodiscard]] std::string collected_text(const std::string& file, std::int64_t measured);

/// How many samples the merged file has, and what was left out of it.
[[nodiscard]] std::string merged_text(const std::string& file, const MergedCosts& merged);

}  // namespace neuroshard
