// Damage to values, to structure and to bytes.
#include "fuzz/grammar/damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace neuroshard::fuzz {

namespace {

constexpr std::string_view kExtremeNumbers[] = {"0",
                                                "-0",
                                                "-0.0",
                                                "1",
                                                "-1",
                                                "0.5",
                                                "3",
                                                "2147483647",
                                                "2147483648",
                                                "-2147483649",
                                                "4294967296",
                                                "4398046511104",
                                                "4398046511105",
                                                "9007199254740993",
                                                "1152921504606846976",
                                                "9223372036854775807",
                                                "-9223372036854775808",
                                                "9223372036854775808",
                                                "18446744073709551615",
                                                "18446744073709551616",
                                                "5e-324",
                                                "1e-308",
                                                "2.2250738585072014e-308",
                                                "1e-45",
                                                "3.4028235e38",
                                                "1e300",
                                                "1.7976931348623157e308",
                                                "-1.7976931348623157e308",
                                                "1e309",
                                                "1e-400",
                                                "1e999999999999",
                                                "0.1e1",
                                                "65536.0",
                                                "6.5536e4",
                                                "0.99999999999999994",
                                                "1.0000000000000002",
                                                "NaN",
                                                "nan",
                                                "-nan",
                                                "Infinity",
                                                "-Infinity",
                                                "inf",
                                                "1e",
                                                "1.",
                                                ".5",
                                                "+1",
                                                "01",
                                                "0x10",
                                                "--1",
                                                "1_000",
                                                "1,000"};

constexpr std::string_view kOddNames[] = {"",
                                          " ",
                                          "\x1b[31mred",
                                          "\x07",
                                          "line\nwritten to plan.json",
                                          "a\r",
                                          "a\tb",
                                          "\x7f",
                                          ("\xc2\x9b"
                                           "2J"),
                                          ("\xe2\x80\xae"
                                           "txt"),
                                          "\xe2\x80\xa8",
                                          "</script><script>alert(1)</script>",
                                          "<!--",
                                          "{}{0}{:d}",
                                          "%s%n",
                                          "\"quoted\"",
                                          "back\\slash",
                                          "__proto__",
                                          "\xf0\x9f\x98\x80",
                                          "nan",
                                          "null",
                                          "-1",
                                          "|a|b|"};

constexpr std::string_view kBrokenText[] = {
    "\xff",
    "\xfe\xff",
    "\xc0\xaf",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "\xe2\x82",
    "\x80",
    "a\xc3",
    "\xf8\x88\x80\x80",
    "name\xff",
    "\xc2",
    "\xf0\x9f",
    "\xed\xb0\x80tail",
};

constexpr std::string_view kWords[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    "null",
    "true",
    "-1",
    "1e999",
    "\xff",
    "\"format\"",
    "[[[[",
    "\\u0",
    "\\ud800",
    "NaN",
    "/*",
    "\r\n",
    "\xef\xbb\xbf",
    "9223372036854775807",
    "0",
};

void collect(JsonText& value, std::vector<JsonText*>& all) {
  all.push_back(&value);
  for (JsonText& element : value.elements) collect(element, all);
}

bool is_number(const JsonText& value) {
  if (value.kind != JsonText::Kind::token || value.token.empty()) return false;
  const char first = value.token.front();
  return (first >= '0' && first <= '9') || first == '-';
}

JsonText other_value(Random& random) {
  switch (random.below(8)) {
    case 0:
      return token("null");
    case 1:
      return token(once_in(2, random) ? "true" : "false");
    case 2:
      return array({});
    case 3:
      return object({});
    case 4:
      return text("");
    case 5:
      return array({number(std::int64_t{1}), token("null")});
    case 6:
      return text(odd_name(random));
    default:
      return token(extreme_number(random));
  }
}

/// In quotes, with no escape but those of quotes: control characters and broken UTF-8 as they are.
JsonText raw_text(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return token(out + '"');
}

JsonText nested(JsonText value, Random& random) {  // NOLINT(performance-unnecessary-value-param)
  constexpr std::uint64_t kDepths[] = {1, 2, 60, 62, 63, 64, 65, 66, 300, 3000};
  const std::uint64_t depth = one_of(kDepths, random);
  const bool as_object = once_in(2, random);
  // As a token: a tree of this depth would be written by as deep a recursion.
  std::string out;
  for (std::uint64_t i = 0; i < depth; ++i) out += as_object ? "{\"a\":" : "[";
  out += to_string(value);
  for (std::uint64_t i = 0; i < depth; ++i) out += as_object ? '}' : ']';
  return token(std::move(out));
}

/// A number near to what it was.
void nudge(JsonText& value, Random& random) {
  constexpr std::string_view kSuffixes[] = {".0", "e1",       "e-1", "e300", "e-300",
                                            "0",  "00000000", ".5",  "1"};
  if (value.token.front() != '-' && once_in(4, random)) {
    value.token.insert(0, "-");
  } else {
    value.token += one_of(kSuffixes, random);
  }
}

void damage_container(JsonText& value, Random& random) {
  if (value.elements.empty()) {
    value = other_value(random);
    return;
  }
  const bool is_object = value.kind == JsonText::Kind::object;
  const auto at = static_cast<std::ptrdiff_t>(random.below(value.elements.size()));
  const auto other = static_cast<std::ptrdiff_t>(random.below(value.elements.size()));
  switch (random.below(is_object ? 7 : 5)) {
    case 0:
      value.elements.erase(value.elements.begin() + at);
      if (is_object) value.keys.erase(value.keys.begin() + at);
      break;
    case 1: {  // copied first: the element lies in the vector that grows
      JsonText copy = value.elements[at];
      value.elements.insert(value.elements.begin() + other, std::move(copy));
      if (is_object) {
        std::string key = value.keys[at];
        value.keys.insert(value.keys.begin() + other, std::move(key));
      }
      break;
    }
    case 2:
      std::swap(value.elements[at], value.elements[other]);
      break;
    case 3:
      if (is_object || !once_in(20, random)) {
        std::reverse(value.elements.begin(), value.elements.end());
      } else {
        const JsonText copy = value.elements[at];
        value.elements.resize(value.elements.size() + random.below(2000), copy);
      }
      break;
    case 4:
      value = nested(std::move(value), random);
      break;
    case 5:
      value.keys[at] = raw_text(once_in(2, random) ? hostile_text(random) : "unknown").token;
      break;
    default:
      value.keys.push_back(quoted("more"));
      value.elements.push_back(other_value(random));
  }
}

void damage_token(JsonText& value, Random& random) {
  if (is_number(value)) {
    if (once_in(4, random)) {
      nudge(value, random);
    } else {
      value = once_in(8, random) ? other_value(random) : token(extreme_number(random));
    }
    return;
  }
  switch (random.below(4)) {
    case 0:
      value = raw_text(hostile_text(random));
      break;
    case 1:
      value = text(odd_name(random));
      break;
    case 2:
      value = nested(std::move(value), random);
      break;
    default:
      value = other_value(random);
  }
}

void damage_lines(std::vector<std::string>& lines, Random& random) {
  if (lines.empty()) return;
  const auto at = static_cast<std::ptrdiff_t>(random.below(lines.size()));
  switch (random.below(7)) {
    case 0:
      lines.erase(lines.begin() + at);
      break;
    case 1: {
      std::string copy = lines[at];
      lines.insert(lines.begin() + at, std::move(copy));
      break;
    }
    case 2:
      lines.insert(lines.begin() + at, "");
      break;
    case 3:
      std::swap(lines[at], lines[random.below(lines.size())]);
      break;
    case 4:
      lines[at] += once_in(2, random) ? "\r" : " ";
      break;
    case 5:
      lines[at].resize(random.below(lines[at].size() + 1));
      break;
    default:
      damage_bytes(lines[at], random);
  }
}

}  // namespace

std::int64_t integer_between(std::int64_t low, std::int64_t high, Random& random) {
  if (low >= high) return low;
  if (once_in(8, random)) return once_in(2, random) ? low : high;
  const double range = static_cast<double>(high) - static_cast<double>(low) + 1.0;
  const double offset = std::exp2(random.uniform(0.0, std::log2(range))) - 1.0;
  // A double may round up to beyond what an integer can hold.
  return offset >= static_cast<double>(high) - static_cast<double>(low)
             ? high
             : low + static_cast<std::int64_t>(offset);
}

double number_between(double low, double high, Random& random) {
  if (once_in(8, random)) return once_in(2, random) ? low : high;
  return std::clamp(std::exp2(random.uniform(std::log2(low), std::log2(high))), low, high);
}

std::string extreme_number(Random& random) { return std::string(one_of(kExtremeNumbers, random)); }

std::string odd_name(Random& random) {
  if (once_in(30, random))
    return std::string(1 + random.below(5000), 'x');  // NOLINT(modernize-return-braced-init-list)
  if (once_in(30, random)) return {'a', '\0', 'b'};
  return std::string(one_of(kOddNames, random));
}

std::string hostile_text(Random& random) {
  return once_in(2, random) ? std::string(one_of(kBrokenText, random)) : odd_name(random);
}

void damage(JsonText& root, Random& random) {
  std::vector<JsonText*> all;
  collect(root, all);
  JsonText& chosen = *all[random.below(all.size())];
  if (once_in(20, random)) {
    const JsonText copy = *all[random.below(all.size())];
    chosen = copy;
  } else if (chosen.kind == JsonText::Kind::token) {
    damage_token(chosen, random);
  } else {
    damage_container(chosen, random);
  }
}

void damage_bytes(std::string& bytes, Random& random) {
  const std::size_t at = random.below(bytes.size() + 1);
  const std::size_t length = std::min<std::size_t>(random.below(40), bytes.size() - at);
  switch (random.below(5)) {
    case 0:
      if (at < bytes.size()) bytes[at] ^= static_cast<char>(1U << random.below(8));
      break;
    case 1:
      bytes.erase(at, length);
      break;
    case 2:
      bytes.insert(at, std::string(bytes, at, length));
      break;
    case 3:
      bytes.resize(at);
      break;
    default:
      bytes.replace(at, std::min<std::size_t>(length, 4), one_of(kWords, random));
  }
}

std::string damaged_text(JsonText root, Random& random) {
  if (once_in(3, random)) return to_string(root);
  for (std::uint64_t i = random.below(3) + 1; i > 0; --i) damage(root, random);
  std::string bytes = to_string(root);
  if (once_in(10, random)) damage_bytes(bytes, random);
  return bytes;
}

std::string damaged_lines(std::vector<JsonText> lines, Random& random) {
  const bool is_damaged = !once_in(3, random);
  if (is_damaged && !lines.empty() && !once_in(4, random)) {
    for (std::uint64_t i = random.below(3) + 1; i > 0; --i) {
      damage(lines[random.below(lines.size())], random);
    }
  }
  std::vector<std::string> texts;
  for (const JsonText& line : lines) texts.push_back(to_string(line));
  if (is_damaged && once_in(3, random)) damage_lines(texts, random);
  std::string out;
  for (const std::string& line : texts) out += line + "\n";
  if (is_damaged && once_in(10, random)) damage_bytes(out, random);
  return out;
}

}  // namespace neuroshard::fuzz
