// The version of this library, recorded with what it makes.
#pragma once

#include <string_view>

namespace neuroshard {

/// "0.1.0".
[[nodiscard]] std::string_view version();

}  // namespace neuroshard
