// UTF-8: where a character ends and whether it is one.
#pragma once

#include <cstddef>
#include <string_view>

namespace neuroshard {

/// Bytes of the character that begins at `start` (1 to 4), or 0 if none does: no truncated or
/// overlong sequences, no surrogates, nothing above U+10FFFF (RFC 3629).
[[nodiscard]] inline std::size_t utf8_length(std::string_view text, std::size_t start) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return start + i < text.size() ? static_cast<unsigned char>(text[start + i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80u) return 1;
  if (first >= 0xC2u && first <= 0xDFu) return continues(1) ? 2 : 0;
  if ((first & 0xF0u) == 0xE0u) {
    const bool overlong = first == 0xE0u && byte(1) < 0xA0u;
    const bool surrogate = first == 0xEDu && byte(1) > 0x9Fu;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0u && first <= 0xF4u) {
    const bool overlong = first == 0xF0u && byte(1) < 0x90u;
    const bool beyond = first == 0xF4u && byte(1) > 0x8Fu;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

[[nodiscard]] inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace neuroshard
