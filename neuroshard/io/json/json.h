// A JSON value that keeps what strict readers need: the order of fields, and integers distinct from
// decimals.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace neuroshard {

/// One JSON value. Objects keep the order of their fields. A number written without fraction and
/// exponent is an integer, every other one is a double.
class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;
  /// uint64_t only above the range of int64_t; monostate is null.
  using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                             Array, Object>;

  // Defined below Member: what copies or destroys a vector of members needs the whole of one.
  Json() noexcept;
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  Json(bool value);
  Json(double value);
  Json(std::string value);
  Json(std::string_view value);
  Json(const char* value);
  Json(Array value);
  Json(Object value);
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value)
      : Json(std::in_range<std::int64_t>(value), static_cast<std::uint64_t>(value)) {}

  [[nodiscard]] const Value& value() const noexcept { return value_; }
  [[nodiscard]] Value& value() noexcept { return value_; }

  [[nodiscard]] const Array* array() const noexcept { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* object() const noexcept { return std::get_if<Object>(&value_); }
  [[nodiscard]] const std::string* text() const noexcept {
    return std::get_if<std::string>(&value_);
  }

  /// The field of an object; nullptr if this is no object or has no such field.
  [[nodiscard]] const Json* find(std::string_view key) const;

  /// Sets a field, at the end if it is new. Null becomes an object. Returns this value.
  Json& set(std::string_view key, Json value);

  /// Objects are equal if they have the same fields in any order; 3 and 3.0 differ.
  friend bool operator==(const Json& a, const Json& b);

 private:
  /// An integer by its 64 bits.
  Json(bool fits_signed, std::uint64_t bits);

  Value value_;
};

struct Json::Member {
  std::string key{};
  Json value{};
};

inline Json::Json() noexcept = default;
// Not the variant's own copy: where that finds no memory, libstdc++ 12 destroys an alternative that
// is not there.
inline Json::Json(const Json& other) {
  std::visit([this](const auto& value) { value_ = std::decay_t<decltype(value)>(value); },
             other.value_);
}
inline Json::Json(Json&& other) noexcept = default;
inline Json& Json::operator=(const Json& other) {
  if (this != &other) *this = Json(other);
  return *this;
}
inline Json& Json::operator=(Json&& other) noexcept = default;
inline Json::~Json() = default;

/// Deepest nesting that `parse_json` accepts.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// Parses one JSON text. Throws InputError "<location>: line L, column C: expected ..., got ..."
/// for everything that is not JSON (RFC 8259) in UTF-8, and also for a field given twice, a number
/// beyond a double's range, nesting deeper than kMaxJsonDepth, and more values than
/// `max_json_values()` (input_limit.h). `location` is the file's name;
/// with `one_line` it is "file: line 17" and only the column is added.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view location,
                              bool one_line = false);

/// On one line. Numbers are written in the fewest digits that read back to the same bits. Throws
/// InputError for a number that is not finite.
[[nodiscard]] std::string to_line(const Json& value);

/// For people: objects with a field per line, arrays of objects with an object per line, ending in
/// a newline. The same value always gives the same bytes.
[[nodiscard]] std::string to_document(const Json& value);

/// The value as an error message shows it: short, on one line, whatever it contains.
[[nodiscard]] std::string describe(const Json& value);

/// Text in double quotes, control characters and invalid UTF-8 escaped, long text shortened.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// `place` extended by a field, e.g. "tables[3]" and "name" -> "tables[3].name".
[[nodiscard]] std::string field_place(std::string_view place, std::string_view key);

/// Place of the first difference between two values and both descriptions; empty if equal.
struct JsonDifference {
  std::string place{};
  std::string expected{};
  std::string actual{};
};
[[nodiscard]] std::vector<JsonDifference> first_difference(const Json& expected, const Json& actual,
                                                           const std::string& place = "");

}  // namespace neuroshard
