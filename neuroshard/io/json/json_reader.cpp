// Strict access to JSON values, and the errors that name file and field.
#include "neuroshard/io/json/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "neuroshard/core/error.h"

namespace neuroshard {

void JsonReader::expect_format(std::string_view format) const {
  const JsonReader found = field("format");
  if (found.text() != format) found.fail(in_quotes(format));
}

void JsonReader::allow_fields(std::initializer_list<std::string_view> names) const {
  for (const Json::Member& member : members()) {
    if (std::find(names.begin(), names.end(), member.key) == names.end()) {
      fail(fmt::format("no fields but {}", fmt::join(names, ", ")), in_quotes(member.key));
    }
  }
}

JsonReader JsonReader::field(std::string_view key) const& {
  (void)members();
  if (const Json* found = value_->find(key)) return {*found, this, key, 0};
  JsonReader(*value_, this, key, 0).fail("this required field", "nothing");
}

std::optional<JsonReader> JsonReader::optional_field(std::string_view key) const& {
  (void)members();
  const Json* found = value_->find(key);
  if (!found) return std::nullopt;
  return JsonReader(*found, this, key, 0);
}

void JsonReader::for_each_field(
    const std::function<void(const std::string&, const JsonReader&)>& visit) const& {
  for (const Json::Member& member : members()) {
    visit(member.key, JsonReader(member.value, this, member.key, 0));
  }
}

std::size_t JsonReader::array_size() const {
  const Json::Array* items = value_->array();
  if (!items) fail("an array");
  return items->size();
}

JsonReader JsonReader::element(std::size_t index) const& {
  return {value_->array()->at(index), this, {}, index};
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_->value())) {
    if (*integer >= low && *integer <= high) return *integer;
  }
  const bool bounded = low != std::numeric_limits<std::int64_t>::min() ||
                       high != std::numeric_limits<std::int64_t>::max();
  std::string expected = "an integer";
  if (bounded) expected += fmt::format(" between {} and {}", low, high);
  if (std::holds_alternative<double>(value_->value())) {
    expected += " (no fraction, no exponent, at most 64 bits)";
  } else if (std::holds_alternative<std::uint64_t>(value_->value()) && !bounded) {
    expected += fmt::format(" of at most {}", high);
  }
  fail(expected);
}

double JsonReader::number() const {
  if (const auto* number = std::get_if<double>(&value_->value())) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&value_->value())) {
    return static_cast<double>(*integer);
  }
  if (const auto* integer = std::get_if<std::uint64_t>(&value_->value())) {
    return static_cast<double>(*integer);
  }
  fail("a number");
}

const std::string& JsonReader::text() const {
  const std::string* text = value_->text();
  if (!text) fail("a string");
  return *text;
}

bool JsonReader::boolean() const {
  const bool* flag = std::get_if<bool>(&value_->value());
  if (!flag) fail("true or false");
  return *flag;
}

const Json& JsonReader::object() const {
  (void)members();
  return *value_;
}

std::string JsonReader::place() const {
  if (!parent_) return {};
  return key_.data() ? field_place(parent_->place(), key_)
                     : fmt::format("{}[{}]", parent_->place(), index_);
}

void JsonReader::fail(const std::string& expected) const { fail(expected, describe(*value_)); }

void JsonReader::fail(const std::string& expected, const std::string& actual) const {
  throw InputError(where(), expected, actual);
}

void JsonReader::check(const std::function<void()>& checks) const {
  try {
    checks();
  } catch (const InputError& error) {
    throw InputError(where() + (parent_ ? "." : ": ") + error.what());
  }
}

std::string JsonReader::where() const {
  const JsonReader* root = this;
  while (root->parent_) root = root->parent_;
  const std::string within = place();
  return std::string(root->key_) + (within.empty() ? "" : ": " + within);
}

const Json::Object& JsonReader::members() const {
  const Json::Object* members = value_->object();
  if (!members) fail("an object");
  return *members;
}

}  // namespace neuroshard
