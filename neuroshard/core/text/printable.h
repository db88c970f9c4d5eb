// Names, paths and messages as they may be shown on a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace neuroshard {

/// The code point of a valid UTF-8 character, if terminals obey it instead of showing it: a control
/// character (C0, DEL and C1), a line or paragraph separator, one that turns the direction of text.
[[nodiscard]] std::optional<unsigned> obeyed_code_point(std::string_view character);

/// The text on one line, with nothing that a terminal obeys instead of showing: control characters
/// (C0, DEL and C1), line and paragraph separators and those that turn the direction of text become
/// \x1b or \u009b, bytes that are no UTF-8 \x9b. Any other text is as it was.
[[nodiscard]] std::string printable(std::string_view text);

/// The text as JSON can have it: as it is if it is UTF-8, else as `printable` shows it. For paths
/// that nobody looks up again; the system's may be any bytes.
[[nodiscard]] std::string as_utf8(std::string_view text);

}  // namespace neuroshard
