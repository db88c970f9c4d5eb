// One field of a document that is not read as a whole: for telling files apart by their beginning.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace neuroshard {

/// The text of a field of the object that `text` begins with, as `parse_json` would have it: after
/// white space, with escapes, whichever fields come before. What follows the field may be cut off
/// or damaged. Nothing if there is no such field, it is no text, or what comes before it is no
/// JSON.
[[nodiscard]] std::optional<std::string> peek_text_field(std::string_view text,
                                                         std::string_view key);

}  // namespace neuroshard
