// JSON values: access, comparison, and how they appear in files and in messages.
#include "neuroshard/io/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/text/utf8.h"

namespace neuroshard {

namespace {

constexpr std::size_t kLongestQuote = 80;

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // for compilers without C++20's deduction for aggregates

void append_escaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
  }
}

bool needs_escape(unsigned char c) { return c == '"' || c == '\\' || c < 0x20 || c == 0x7f; }

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) throw InputError("text", "valid UTF-8", in_quotes(text));
    if (length == 1 && needs_escape(static_cast<unsigned char>(text[i]))) {
      append_escaped(out, static_cast<unsigned char>(text[i]));
    } else if (const auto code =
                   length == 1 ? std::nullopt : obeyed_code_point(text.substr(i, length))) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", *code);
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  out += '"';
}

std::string number_text(double value) {
  char buffer[32];
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void line(const Json& value) {
    std::visit(Overloaded{[&](std::monostate) { out_ += "null"; },
                          [&](bool flag) { out_ += flag ? "true" : "false"; },
                          [&](double number) { decimal(number); },
                          [&](const std::string& text) { append_string(out_, text); },
                          [&](const Json::Array& items) { line_array(items); },
                          [&](const Json::Object& members) { line_object(members); },
                          [&](auto integer) { out_ += fmt::to_string(integer); }},
               value.value());
  }

  void document(const Json& value, std::size_t depth) {
    if (const Json::Object* members = value.object(); members && !members->empty()) {
      expanded_object(*members, depth);
    } else if (const Json::Array* items = value.array(); items && has_object(*items)) {
      expanded_array(*items, depth);
    } else {
      line(value);
    }
  }

 private:
  static bool has_object(const Json::Array& items) {
    return std::any_of(items.begin(), items.end(),
                       [](const Json& item) { return item.object() != nullptr; });
  }

  void decimal(double number) {
    if (!std::isfinite(number)) {
      throw InputError("number", "a finite number to write", fmt::format("{}", number));
    }
    out_ += number_text(number);
  }

  void line_array(const Json::Array& items) {
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      line(items[i]);
    }
    out_ += ']';
  }

  void line_object(const Json::Object& members) {
    out_ += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out_ += ", ";
      key(members[i].key);
      line(members[i].value);
    }
    out_ += '}';
  }

  void expanded_object(const Json::Object& members, std::size_t depth) {
    out_ += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      next_line(i > 0, depth + 1);
      key(members[i].key);
      document(members[i].value, depth + 1);
    }
    next_line(false, depth);
    out_ += '}';
  }

  void expanded_array(const Json::Array& items, std::size_t depth) {
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      next_line(i > 0, depth + 1);
      line(items[i]);
    }
    next_line(false, depth);
    out_ += ']';
  }

  void key(const std::string& name) {
    append_string(out_, name);
    out_ += ": ";
  }

  void next_line(bool comma, std::size_t depth) {
    out_ += comma ? ",\n" : "\n";
    out_.append(2 * depth, ' ');
  }

  std::string& out_;
};

bool is_plain_key(std::string_view key) {
  return !key.empty() && key.size() <= 64 && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// The members sorted by key, so that two objects can be compared side by side.
std::vector<const Json::Member*> sorted_members(const Json::Object& object) {
  std::vector<const Json::Member*> members;
  members.reserve(object.size());
  for (const Json::Member& member : object) members.push_back(&member);
  std::stable_sort(members.begin(), members.end(),
                   [](const auto* a, const auto* b) { return a->key < b->key; });
  return members;
}

bool equal_objects(const Json::Object& a, const Json::Object& b) {
  return a.size() == b.size() &&
         std::ranges::equal(sorted_members(a), sorted_members(b),
                            [](const Json::Member* left, const Json::Member* right) {
                              return left->key == right->key && left->value == right->value;
                            });
}

/// Values by key: an object may have a million fields.
std::unordered_map<std::string_view, const Json*> by_key(const Json::Object& object) {
  std::unordered_map<std::string_view, const Json*> values;
  for (const Json::Member& member : object) values.emplace(member.key, &member.value);
  return values;
}

std::vector<JsonDifference> object_difference(const Json::Object& expected,
                                              const Json::Object& actual,
                                              const std::string& place) {
  const auto others = by_key(actual);
  for (const Json::Member& member : expected) {
    const auto other = others.find(member.key);
    const std::string where = field_place(place, member.key);
    if (other == others.end()) return {{where, describe(member.value), "nothing"}};
    if (auto found = first_difference(member.value, *other->second, where); !found.empty()) {
      return found;
    }
  }
  const auto known = by_key(expected);
  for (const Json::Member& member : actual) {
    if (!known.contains(member.key)) {
      return {{field_place(place, member.key), "nothing", describe(member.value)}};
    }
  }
  return {};
}

std::vector<JsonDifference> array_difference(const Json::Array& expected, const Json::Array& actual,
                                             const std::string& place) {
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    auto found = first_difference(expected[i], actual[i], fmt::format("{}[{}]", place, i));
    if (!found.empty()) return found;
  }
  if (expected.size() == actual.size()) return {};
  return {{place, fmt::format("{} elements", expected.size()),
           fmt::format("{} elements", actual.size())}};
}

}  // namespace

Json::Json(bool value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}
Json::Json(bool fits_signed, std::uint64_t bits) {
  if (fits_signed) {
    value_ = static_cast<std::int64_t>(bits);
  } else {
    value_ = bits;
  }
}

const Json* Json::find(std::string_view key) const {
  const Object* members = object();
  if (!members) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(),
                                  [&](const Member& member) { return member.key == key; });
  return found == members->end() ? nullptr : &found->value;
}

Json& Json::set(std::string_view key, Json value) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Object{};
  Object& members = std::get<Object>(value_);
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.key == key; });
  if (found == members.end()) {
    members.push_back({std::string(key), std::move(value)});
  } else {
    found->value = std::move(value);
  }
  return *this;
}

bool operator==(const Json& a, const Json& b) {
  if (a.value_.index() != b.value_.index()) return false;
  if (const Json::Object* members = a.object()) return equal_objects(*members, *b.object());
  if (const Json::Array* items = a.array()) return std::ranges::equal(*items, *b.array());
  if (const std::string* text = a.text()) return *text == *b.text();
  return to_line(a) == to_line(b);  // scalars: equal if they are written the same
}

std::string to_line(const Json& value) {
  std::string out;
  Writer(out).line(value);
  return out;
}

std::string to_document(const Json& value) {
  std::string out;
  Writer(out).document(value, 0);
  out += '\n';
  return out;
}

std::string describe(const Json& value) {
  if (const Json::Array* items = value.array()) {
    return items->empty() ? "an empty array" : fmt::format("an array of {}", items->size());
  }
  if (value.object()) return "an object";
  if (const std::string* text = value.text()) return in_quotes(*text);
  return to_line(value);
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (out.size() + std::max<std::size_t>(length, 1) > kLongestQuote) {
      return out + fmt::format("...\" ({} bytes)", text.size());
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (length == 1 && needs_escape(byte)) {
      append_escaped(out, byte);
    } else {
      out.append(text, i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return out + '"';
}

std::string field_place(std::string_view place, std::string_view key) {
  if (!is_plain_key(key)) return fmt::format("{}[{}]", place, in_quotes(key));
  return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

std::vector<JsonDifference> first_difference(const Json& expected, const Json& actual,
                                             const std::string& place) {
  if (expected.object() && actual.object()) {
    return object_difference(*expected.object(), *actual.object(), place);
  }
  if (expected.array() && actual.array()) {
    return array_difference(*expected.array(), *actual.array(), place);
  }
  if (expected == actual) return {};
  return {{place, describe(expected), describe(actual)}};
}

}  // namespace neuroshard
