// Trees of JSON text, built and written.
#include "fuzz/grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <variant>

namespace neuroshard::fuzz {

namespace {

void write(const JsonText& value, std::string& out) {
  if (value.kind == JsonText::Kind::token) {
    out += value.token;
    return;
  }
  const bool is_object = value.kind == JsonText::Kind::object;
  out += is_object ? '{' : '[';
  for (std::size_t i = 0; i < value.elements.size(); ++i) {
    if (i > 0) out += ',';
    if (is_object) {
      out += value.keys[i];
      out += ':';
    }
    write(value.elements[i], out);
  }
  out += is_object ? '}' : ']';
}

}  // namespace

JsonText& JsonText::add(std::string_view key, JsonText value) {
  kind = Kind::object;
  keys.push_back(quoted(key));
  elements.push_back(std::move(value));
  return *this;
}

JsonText& JsonText::at(std::string_view key) {
  const auto found = std::find(keys.begin(), keys.end(), quoted(key));
  if (found == keys.end()) throw std::logic_error("no field " + std::string(key));
  return elements[static_cast<std::size_t>(std::distance(keys.begin(), found))];
}

JsonText token(std::string text) {
  JsonText value;
  value.token = std::move(text);
  return value;
}

JsonText number(std::int64_t value) { return token(fmt::to_string(value)); }

JsonText number(double value) { return token(fmt::to_string(value)); }

JsonText text(std::string_view value) { return token(quoted(value)); }

JsonText array(std::vector<JsonText> elements) {
  JsonText value;
  value.kind = JsonText::Kind::array;
  value.elements = std::move(elements);
  return value;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): its fields are moved from
JsonText object(std::vector<std::pair<std::string_view, JsonText>> fields) {
  JsonText value;
  value.kind = JsonText::Kind::object;
  for (auto& [key, field] : fields) value.add(key, std::move(field));
  return value;
}

JsonText json_text(const Json& value) {
  if (const Json::Array* elements = value.array()) {
    JsonText result = array({});
    for (const Json& element : *elements) result.elements.push_back(json_text(element));
    return result;
  }
  if (const Json::Object* members = value.object()) {
    JsonText result = object({});
    for (const Json::Member& member : *members) result.add(member.key, json_text(member.value));
    return result;
  }
  return token(to_line(value));
}

std::string quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string to_string(const JsonText& value) {
  std::string out;
  write(value, out);
  return out;
}

}  // namespace neuroshard::fuzz
