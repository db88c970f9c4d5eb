// Collections of costs as text: a line of progress and one in the end.
#pragma once

#include <cstdint>
#include <string>

#include "neuroshard/collect/compute/compute_collector.h"
#include "neuroshard/io/compute_costs_merge.h"

namespace neuroshard {

/// "12 of 100 samples, 3.00 s left"; `what` names the things counted.
[[nodiscard]] std::string collection_progress_text(const CollectionProgress& progress,
                                                   const std::string& what = "samples");

/// "costs.jsonl: 1 sample measured".
[[nodiscard]] std::string collected_text(const std::string& file, std::int64_t measured);

/// The number of samples in the merged file, and of those left out.
[[nodiscard]] std::string merged_text(const std::string& file, const MergedCosts& merged);

}  // namespace neuroshard
