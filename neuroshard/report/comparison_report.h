// A comparison's summaries as a table, with the meaning of its columns below.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_io.h"

namespace neuroshard {

/// "cuts: columns+rows of a, b; none of c\n"; empty if none is allowed more than columns, as in the
/// paper.
[[nodiscard]] std::string cuts_text(const std::vector<ComparisonSummary>& summaries);

[[nodiscard]] std::string comparison_text(const std::vector<ComparisonEntry>& entries,
                                          const std::vector<ComparisonSummary>& summaries,
                                          const ComparisonSetting& setting);

}  // namespace neuroshard
