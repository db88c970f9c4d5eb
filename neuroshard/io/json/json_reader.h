// A strict view of a JSON value that knows its place, so that every error names file and field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "neuroshard/io/json/json.h"

namespace neuroshard {

/// A value in a document. Every member function throws InputError
/// "<location>: <place>: expected X, got Y" if the value is not what is asked for.
/// A reader refers to its parent, its document and the location's characters: all must outlive it,
/// so `root.field("a").field("b")` does not compile, name the middle one.
class JsonReader {
 public:
  /// The document itself. `location` is the file's name, for JSON Lines with the line's number.
  JsonReader(const Json& document, std::string_view location) : value_(&document), key_(location) {}

  /// Throws unless the object's field "format" is `format`, e.g. "neuroshard/task/1".
  void expect_format(std::string_view format) const;

  /// Throws unless this is an object with no other fields than these.
  void allow_fields(std::initializer_list<std::string_view> names) const;

  /// A required field.
  [[nodiscard]] JsonReader field(std::string_view key) const&;
  JsonReader field(std::string_view key) const&& = delete;

  [[nodiscard]] std::optional<JsonReader> optional_field(std::string_view key) const&;
  std::optional<JsonReader> optional_field(std::string_view key) const&& = delete;

  /// All fields of an object, in the file's order.
  void for_each_field(
      const std::function<void(const std::string& key, const JsonReader& value)>& visit) const&;

  /// Number of elements of an array.
  [[nodiscard]] std::size_t array_size() const;
  [[nodiscard]] JsonReader element(std::size_t index) const&;
  JsonReader element(std::size_t index) const&& = delete;

  /// An integer written without fraction and exponent, within [low, high].
  [[nodiscard]] std::int64_t integer(
      std::int64_t low = std::numeric_limits<std::int64_t>::min(),
      std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// Any (finite) number.
  [[nodiscard]] double number() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool boolean() const;
  /// An object of any content.
  [[nodiscard]] const Json& object() const;
  [[nodiscard]] const Json& value() const noexcept { return *value_; }

  /// Runs checks of core, whose InputErrors name a place within this value, and adds location and
  /// place to them.
  void check(const std::function<void()>& checks) const;

  /// e.g. "tables[3].embedding_dim"; empty for the document itself.
  [[nodiscard]] std::string place() const;

  /// Throws "<location>: <place>: expected <expected>, got <actual, or this value>".
  [[noreturn]] void fail(const std::string& expected) const;
  [[noreturn]] void fail(const std::string& expected, const std::string& actual) const;

 private:
  JsonReader(const Json& value, const JsonReader* parent, std::string_view key, std::size_t index)
      : value_(&value), parent_(parent), key_(key), index_(index) {}

  const Json::Object& members() const;
  /// "<location>" or "<location>: <place>".
  std::string where() const;

  const Json* value_;
  const JsonReader* parent_ = nullptr;
  std::string_view key_;   ///< the location at the root, empty in an array
  std::size_t index_ = 0;  ///< in an array
};

}  // namespace neuroshard
