// Files of one collection, measured by several processes, as one file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neuroshard {

struct MergedCosts {
  std::int64_t samples = 0;
  std::int64_t skipped = 0;
  std::int64_t repeated = 0;  ///< samples that several files have: the first file's counts
};

/// Writes the samples of all files to `output`, by their number; gzip-compressed if its name
/// ends in ".gz". Throws InputError unless all headers are the same (it names the first field that
/// differs), and every sample has a number.
MergedCosts merge_compute_costs(const std::vector<std::string>& paths, const std::string& output);

}  // namespace neuroshard
