// Reads tokens until the field is there.
#include "neuroshard/io/json/json_peek.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

namespace neuroshard {

namespace {

/// Receives the parser's events, and ends the parse, with a false return, at the field.
class FieldFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FieldFinder(std::string_view key) : key_(key) {}

  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool number_integer(number_integer_t) override { return other_value(); }
  bool number_unsigned(number_unsigned_t) override { return other_value(); }
  bool number_float(number_float_t, const string_t&) override { return other_value(); }
  bool binary(binary_t&) override { return false; }  // not part of JSON text
  bool string(string_t& value) override {
    if (!is_field_) return other_value();
    found_ = std::move(value);
    return false;
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return depth_ > 0 && open(); }
  bool key(string_t& value) override {
    is_field_ = depth_ == 1 && value == key_;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

  std::optional<std::string> take() { return std::move(found_); }

 private:
  /// The document must be an object, and the field text.
  [[nodiscard]] bool other_value() const { return depth_ > 0 && !is_field_; }
  bool open() {
    if (is_field_) return false;
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::string_view key_;
  std::size_t depth_ = 0;
  bool is_field_ = false;  ///< the next value is the field's
  std::optional<std::string> found_;
};

}  // namespace

std::optional<std::string> peek_text_field(std::string_view text, std::string_view key) {
  FieldFinder finder(key);
  nlohmann::json::sax_parse(text.begin(), text.end(), &finder);
  return finder.take();
}

}  // namespace neuroshard
