// A comparison's summaries as a table, with the meaning of its columns below.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_io.h"

namespace neuroshard {

[[nodiscard]] std::string comparison_text(const std::vector<ComparisonEntry>& entries,
                                          const std::vector<ComparisonSummary>& summaries,
                                          const ComparisonSetting& setting);

}  // namespace neuroshard
