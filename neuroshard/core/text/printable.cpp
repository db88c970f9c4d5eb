// Characters that terminals obey, by their code points.
#include "neuroshard/core/text/printable.h"

#include <fmt/format.h>

#include <iterator>

#include "neuroshard/core/text/utf8.h"

namespace neuroshard {

namespace {

/// Of the valid character with these bytes.
unsigned code_point(std::string_view bytes) {
  if (bytes.size() == 1) return static_cast<unsigned char>(bytes[0]);
  // The first byte of n has 7 - n bits of the character's, each of the others 6.
  unsigned code = static_cast<unsigned char>(bytes[0]) & ((1U << (7 - bytes.size())) - 1);
  for (const char byte : bytes.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return code;
}

}  // namespace

std::optional<unsigned> obeyed_code_point(std::string_view character) {
  const unsigned code = code_point(character);
  const bool is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  const bool turns_text = code == 0x061C || code == 0x200E || code == 0x200F ||
                          (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  if (is_control || ends_line || turns_text) return code;
  return std::nullopt;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", static_cast<unsigned char>(text[i++]));
      continue;
    }
    const std::string_view bytes = text.substr(i, length);
    const std::optional<unsigned> code = obeyed_code_point(bytes);
    if (!code) {
      shown += bytes;
    } else if (*code < 0x80) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", *code);
    } else {
      fmt::format_to(std::back_inserter(shown), "\\u{:04x}", *code);
    }
    i += length;
  }
  return shown;
}

std::string as_utf8(std::string_view text) {
  return is_utf8(text) ? std::string(text) : printable(text);
}

}  // namespace neuroshard
