// Parsing of JSON: nlohmann-json reads the tokens, and this builds the value and judges it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/input_limit.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

namespace {

using namespace std::string_literals;

constexpr int kNumberOverflow = 406;  ///< nlohmann-json's out_of_range.406
constexpr std::string_view kReason = " - ";
constexpr std::string_view kExpected = "; expected ";

/// Receives the parser's events. A false return ends the parse; `error` then says why.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::string_view location, bool one_line)
      : text_(text), location_(location), one_line_(one_line) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not part of JSON text
  bool start_object(std::size_t) override { return open(Json::Object{}); }
  bool start_array(std::size_t) override { return open(Json::Array{}); }
  bool key(string_t& value) override {
    std::get<Json::Object>(open_.back()->value()).push_back({std::move(value), Json()});
    return true;
  }
  bool end_object() override {
    if (const std::string* twice = repeated_key()) {
      error_ =
          InputError(fmt::format("{}: {}", location_, field_place(place(open_.size() - 1), *twice)),
                     "this field once", "it more than once");
      return false;
    }
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    const auto [expected, actual] =
        error.id == kNumberOverflow
            ? std::pair("a number that a double can hold"s, in_quotes(token))
            : expected_and_actual(error.what(), token);
    error_ = InputError(position_text(position), expected, actual);
    return false;
  }

  Json take() {
    if (error_) throw InputError(*error_);
    return std::move(root_);
  }

  /// Location, line and column of byte number `position`, counted from 1.
  [[nodiscard]] std::string position_text(std::size_t position) const {
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
    const std::size_t column = std::max<std::size_t>(before.size() - line_start, 1);
    if (one_line_) return fmt::format("{}, column {}", location_, column);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return fmt::format("{}: line {}, column {}", location_, line, column);
  }

 private:
  bool add(Json value) {
    if (!is_one_more()) return false;
    next_slot() = std::move(value);
    return true;
  }

  bool open(Json container) {
    if (open_.size() == kMaxJsonDepth) {
      error_ = InputError(fmt::format("{}: {}", location_, place(open_.size() - 1)),
                          fmt::format("at most {} levels of nesting", kMaxJsonDepth), "more");
      return false;
    }
    if (!is_one_more()) return false;
    Json& slot = next_slot();
    slot = std::move(container);
    open_.push_back(&slot);
    return true;
  }

  /// Counts a value; false if there may be no other.
  bool is_one_more() {
    if (++num_values_ <= most_values_) return true;
    error_ =
        InputError(std::string(location_),
                   fmt::format("at most {} values (NEUROSHARD_MAX_INPUT)", most_values_), "more");
    return false;
  }

  /// Where the next value goes. A container does not grow while one of its elements is open, so
  /// pointers to open containers stay valid.
  Json& next_slot() {
    if (open_.empty()) return root_;
    if (auto* items = std::get_if<Json::Array>(&open_.back()->value())) {
      return items->emplace_back();
    }
    return std::get<Json::Object>(open_.back()->value()).back().value;
  }

  /// A key that the innermost open object has more than once, or nullptr.
  const std::string* repeated_key() {
    const Json::Object& members = *open_.back()->object();
    keys_.clear();
    for (const Json::Member& member : members) keys_.push_back(&member.key);
    std::sort(keys_.begin(), keys_.end(), [](const auto* a, const auto* b) { return *a < *b; });
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end(),
                                          [](const auto* a, const auto* b) { return *a == *b; });
    return twice == keys_.end() ? nullptr : *twice;
  }

  /// Place of the open container number `depth`.
  std::string place(std::size_t depth) const {
    std::string result;
    for (std::size_t i = 0; i < depth; ++i) {
      if (const Json::Array* items = open_[i]->array()) {
        result += fmt::format("[{}]", items->size() - 1);
      } else {
        result = field_place(result, open_[i]->object()->back().key);
      }
    }
    return result;
  }

  /// Splits the parser's "... parse error at ...: syntax error while parsing value - REASON
  /// [; expected A][; last read: 'TOKEN'][; expected B]", where TOKEN may be anything.
  static std::pair<std::string, std::string> expected_and_actual(std::string message,
                                                                 const std::string& token) {
    message.erase(0, message.find(kReason) + kReason.size());
    const std::string last_read = fmt::format("; last read: '{}'", token);
    const auto at = message.find(last_read);
    if (at != std::string::npos) message.erase(at, last_read.size());
    const auto expected_at = std::min(message.find(kExpected), message.size());
    const auto expected_end = std::min(message.find(kExpected, expected_at + 1), message.size());
    std::string expected = "JSON";
    if (expected_at < message.size()) {
      const auto begin = expected_at + kExpected.size();
      expected = message.substr(begin, expected_end - begin);
    }
    std::string actual = message.substr(0, expected_at);
    if (at != std::string::npos) actual += " in " + in_quotes(token);
    return {expected, actual};
  }

  std::string_view text_;
  std::string_view location_;
  bool one_line_;
  std::int64_t num_values_ = 0;
  std::int64_t most_values_ = max_json_values();
  Json root_;
  std::vector<Json*> open_;  ///< containers not yet closed, outermost first
  std::vector<const std::string*> keys_;
  std::optional<InputError> error_;
};

/// What a text takes at the most while it is read and judged, as many times its size: measured with
/// a task of 400,000 tables and with an array of empty objects.
constexpr double kMemoryOfText = 26.0;
}  // namespace

Json parse_json(std::string_view text, std::string_view location, bool one_line) {
  require_memory(kMemoryOfText * static_cast<double>(text.size()), location, "to read it");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError(std::string(location), "JSON", text.empty() ? "nothing" : "only white space");
  }
  if (text.starts_with("\x1f\x8b")) {
    throw InputError(std::string(location), "JSON", "what gzip has compressed");
  }
  Builder builder(text, location, one_line);
  // nlohmann-json takes it for the end of the text, and looks at nothing after it.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw InputError(builder.position_text(nul + 1), "JSON", "a NUL character");
  }
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace neuroshard
