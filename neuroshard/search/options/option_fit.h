// Any choice of options that fits into memory, by trying all of them.
#pragma once

#include <cstdint>
#include <optional>

#include "neuroshard/search/options/option_assignment.h"

namespace neuroshard {

struct OptionFit {
  std::optional<OptionAssignment> found{};
  /// Whether the question is answered: where none was found, none fits.
  bool is_decided = false;
};

/// Depth first: the tables that take the largest share of a memory first, their smallest options
/// first, each shard on the fullest device that has room for it. Ends after about `most_work`
/// looks at a device. For tasks in which nothing else finds a choice: costs do not count.
[[nodiscard]] OptionFit find_option_fit(const OptionSpace& space, std::int64_t most_work);

}  // namespace neuroshard
