// The version of this library, recorded in the files that it writes.
#pragma once

#include <string_view>

namespace neuroshard {

/// "0.1.0".
[[nodiscard]] std::string_view version();

}  // namespace neuroshard
