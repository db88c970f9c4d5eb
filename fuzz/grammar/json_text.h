// JSON text as a tree that may also be wrong: what the generated files are written from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neuroshard/io/json/json.h"

namespace neuroshard::fuzz {

/// A value as it will stand in the text. A scalar is a token of any content, and an object may have
/// a key twice.
struct JsonText {
  enum class Kind { token, array, object };
  Kind kind = Kind::token;
  std::string token = "null";
  std::vector<JsonText> elements{};  ///< of an array, or the values of an object
  std::vector<std::string> keys{};   ///< of an object, quoted; as many as `elements`

  /// At the end of an object.
  JsonText& add(std::string_view key, JsonText value);
  /// The value of an object's first field of this name, which must be there.
  [[nodiscard]] JsonText& at(std::string_view key);
};

[[nodiscard]] JsonText token(std::string text);
[[nodiscard]] JsonText number(std::int64_t value);
/// In the fewest digits; NaN and infinities too, which JSON does not have.
[[nodiscard]] JsonText number(double value);
/// Quoted and escaped; valid JSON if the text is UTF-8.
[[nodiscard]] JsonText text(std::string_view value);
[[nodiscard]] JsonText array(std::vector<JsonText> elements);
[[nodiscard]] JsonText object(std::vector<std::pair<std::string_view, JsonText>> fields);
[[nodiscard]] JsonText json_text(const Json& value);

/// In quotes; of control characters, quotes and backslashes their escapes.
[[nodiscard]] std::string quoted(std::string_view value);

/// On one line.
[[nodiscard]] std::string to_string(const JsonText& value);

}  // namespace neuroshard::fuzz
