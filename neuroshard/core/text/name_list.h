// Names in a message, of which there may be thousands.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace neuroshard {

/// The first `most` names and how many others there are: "a, b and 3 more".
[[nodiscard]] std::string name_list(std::span<const std::string> names, std::size_t most);

}  // namespace neuroshard
