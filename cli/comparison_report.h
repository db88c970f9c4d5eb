// What `neuroshard compare` prints.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/evaluate/comparison.h"

namespace neuroshard::cli {

struct ComparisonSetting {
  std::string reference;  ///< algorithm that ratios are to
  std::string platform;   ///< cluster on which measured plans' all-to-alls were simulated; or empty
};

/// To standard output.
void print_comparison(const std::vector<ComparisonEntry>& entries,
                      const std::vector<ComparisonSummary>& summaries,
                      const ComparisonSetting& setting);

}  // namespace neuroshard::cli
