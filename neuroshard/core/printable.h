// Names, paths and messages as they may be shown on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace neuroshard {

/// The text on one line, with nothing that a terminal obeys instead of showing: control characters
/// (C0, DEL and C1), line and paragraph separators and those that turn the direction of text become
/// \x1b or \u009b, bytes that are no UTF-8 \x9b. Any other text is as it was.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace neuroshard
