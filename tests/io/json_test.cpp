// JSON: refusals with their places, and values that survive writing and reading.
#include "neuroshard/io/json/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "io_test_util.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {
namespace {

std::string parse_error(const std::string& text) {
  return input_error([&] { (void)parse_json(text, "f.json"); });
}

TEST(ParseJson, NamesLineAndColumnOfSyntaxErrors) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "f.json: expected JSON, got nothing"},
      {" \n\t", "f.json: expected JSON, got only white space"},
      {"\x1f\x8b\x08", "f.json: expected JSON, got what gzip has compressed"},
      {"{", "f.json: line 1, column 1: expected string literal, got unexpected end of input"},
      {"{\"a\": 1} x",
       "f.json: line 1, column 10: expected end of input, got invalid literal in \"1} x\""},
      {"[1, 2] [3]", "f.json: line 1, column 8: expected end of input, got unexpected '['"},
      {"[1,\n  2,]",
       "f.json: line 2, column 5: expected '[', '{', or a literal, got unexpected ']'"},
      {"{\"a\" 1}", "f.json: line 1, column 6: expected ':', got unexpected number literal"},
      {"{a: 1}",
       "f.json: line 1, column 2: expected string literal, got invalid literal in \"{a\""},
      {"[NaN]", "f.json: line 1, column 2: expected JSON, got invalid literal in \"[N\""},
      {"[Infinity]", "f.json: line 1, column 2: expected JSON, got invalid literal in \"[I\""},
      {"[01]", "f.json: line 1, column 3: expected ']', got unexpected number literal"},
      {"[1e999]",
       "f.json: line 1, column 6: expected a number that a double can hold, got \"1e999\""},
      {"// comment\n1", "f.json: line 1, column 1: expected JSON, got invalid literal in \"/\""},
      {"\"\xff\"",
       "f.json: line 1, column 2: expected JSON, got invalid string: ill-formed UTF-8 byte in "
       "\"\\\"\\xff\""},
      {"\"\xed\xa0\x80\"",
       "f.json: line 1, column 3: expected JSON, got invalid string: ill-formed UTF-8 byte in "
       "\"\\\"\\xed\\xa0\""},
      {"[1e\x7f]",
       "f.json: line 1, column 4: expected '+', '-', or digit after exponent, got invalid number "
       "in "
       "\"1e\\u007f\""},
      {"[\"'; expected \x7f",
       "f.json: line 1, column 15: expected JSON, got invalid string: missing closing quote in "
       "\"\\\"'; expected \\u007f\""},
      {"\"ab",
       "f.json: line 1, column 3: expected JSON, got invalid string: missing closing quote in "
       "\"\\\"ab\""},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(parse_error(text), message) << text;
}

TEST(ParseJson, RefusesNulCharacters) {
  const std::string nul(1, '\0');
  EXPECT_EQ(parse_error(nul), "f.json: line 1, column 1: expected JSON, got a NUL character");
  EXPECT_EQ(parse_error("{\"a\": 1}" + nul + "anything"),
            "f.json: line 1, column 9: expected JSON, got a NUL character");
  EXPECT_EQ(parse_error("[1,\n" + nul + "2]"),
            "f.json: line 2, column 1: expected JSON, got a NUL character");
  EXPECT_EQ(parse_error("[\"" + nul + "\"]"),
            "f.json: line 1, column 3: expected JSON, got a NUL character");
  EXPECT_EQ(input_error([&] { (void)parse_json("[1]" + nul, "f.jsonl: line 17", true); }),
            "f.jsonl: line 17, column 4: expected JSON, got a NUL character");
  EXPECT_EQ(to_line(parse_json(R"("\u0000")", "f.json")), R"("\u0000")");
}

TEST(ParseJson, RefusesFieldsGivenTwice) {
  EXPECT_EQ(parse_error(R"({"a": 1, "b": 2, "a": 3})"),
            "f.json: a: expected this field once, got it more than once");
  EXPECT_EQ(parse_error(R"({"tables": [{}, {"name": "x", "name": "y"}]})"),
            "f.json: tables[1].name: expected this field once, got it more than once");
  EXPECT_EQ(parse_error(R"({"a b": {"\n": 1, "\u000a": 1}})"),
            "f.json: [\"a b\"][\"\\n\"]: expected this field once, got it more than once");
}

TEST(ParseJson, RefusesDeepNestingWithoutRunningOutOfStack) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW((void)parse_json(nested(kMaxJsonDepth), "f.json"));
  EXPECT_THAT(parse_error(nested(kMaxJsonDepth + 1)),
              testing::EndsWith(": expected at most 64 levels of nesting, got more"));
  EXPECT_THAT(parse_error(std::string(1'000'000, '[')),
              testing::EndsWith(": expected at most 64 levels of nesting, got more"));
}

TEST(ParseJson, GivesOnlyTheColumnWithinALine) {
  EXPECT_EQ(input_error([] { (void)parse_json("[1,]", "f.jsonl: line 17", true); }),
            "f.jsonl: line 17, column 4: expected '[', '{', or a literal, got unexpected ']'");
}

TEST(ParseJson, TellsIntegersFromDecimals) {
  const Json json = parse_json("[3, 3.0, -0.0, 18446744073709551615, 9223372036854775808]", "f");
  const Json::Array& items = *json.array();
  EXPECT_TRUE(std::holds_alternative<std::int64_t>(items[0].value()));
  EXPECT_TRUE(std::holds_alternative<double>(items[1].value()));
  EXPECT_TRUE(std::signbit(std::get<double>(items[2].value())));
  EXPECT_EQ(std::get<std::uint64_t>(items[3].value()), ~std::uint64_t{0});
  EXPECT_EQ(to_line(json), "[3, 3.0, -0.0, 18446744073709551615, 9223372036854775808]");
}

TEST(ToLine, RefusesWhatJsonCannotHold) {
  EXPECT_EQ(input_error([] { (void)to_line(std::nan("")); }),
            "number: expected a finite number to write, got nan");
  // What terminals obey is escaped: C1 control characters, and those that turn the direction.
  EXPECT_EQ(to_line(Json("\xC2\x9B, \xE2\x80\xAE, \xC3\xA9")), "\"\\u009b, \\u202e, \xC3\xA9\"");
  EXPECT_EQ(parse_json(to_line(Json("\xE2\x80\xAE")), "f"), Json("\xE2\x80\xAE"));
  EXPECT_EQ(input_error([] { (void)to_line(Json("\xff")); }),
            "text: expected valid UTF-8, got \"\\xff\"");
}

TEST(ToDocument, PutsFieldsAndObjectsInArraysOnTheirOwnLines) {
  Json json;
  json.set("empty", Json::Object{}).set("numbers", Json::Array{1, 2.5});
  json.set("objects", Json::Array{Json().set("a", Json::Array{Json().set("b", true)}), Json()});
  EXPECT_EQ(to_document(json), R"({
  "empty": {},
  "numbers": [1, 2.5],
  "objects": [
    {"a": [{"b": true}]},
    null
  ]
}
)");
}

TEST(InQuotes, ShortensAtACharacter) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "é";
  const std::string shown = in_quotes(text);
  EXPECT_LT(shown.size(), 100u);
  EXPECT_THAT(shown, testing::EndsWith("é...\" (100 bytes)"));
}

TEST(FirstDifference, NamesThePlace) {
  const auto difference = [](const char* a, const char* b) {
    const auto found = first_difference(parse_json(a, "a"), parse_json(b, "b"));
    if (found.empty()) return std::string("equal");
    return found[0].place + ": " + found[0].expected + " / " + found[0].actual;
  };
  EXPECT_EQ(difference(R"({"a": 1, "b": 2})", R"({"b": 2, "a": 1})"), "equal");
  EXPECT_EQ(difference(R"({"a": [{"x": 1}]})", R"({"a": [{"x": 2}]})"), "a[0].x: 1 / 2");
  EXPECT_EQ(difference(R"({"a": [1]})", R"({"a": [1, 2]})"), "a: 1 elements / 2 elements");
  EXPECT_EQ(difference(R"({"a": 1})", R"({})"), "a: 1 / nothing");
  EXPECT_EQ(difference(R"({})", R"({"a": "x"})"), "a: nothing / \"x\"");
  EXPECT_EQ(difference(R"({"a": 1})", R"({"a": 1.0})"), "a: 1 / 1.0");
}

TEST(FirstDifference, OfObjectsOfManyFieldsIsFound) {
  Json::Object members;
  for (int i = 0; i < 300'000; ++i) members.push_back({fmt::format("field{}", i), Json(i)});
  const Json expected = members;
  std::reverse(members.begin(), members.end());
  EXPECT_TRUE(first_difference(expected, Json(members)).empty());
  members.front().value = Json("other");
  const auto found = first_difference(expected, Json(members));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, "field299999");
}

TEST(JsonReader, NamesFilePlaceExpectedAndActual) {
  const Json json = parse_json(R"({"n": 1.5, "i": 7, "s": "x", "a": [1, [2]], "big": 1e300,
                                  "huge": 9223372036854775808, "e": 6.5e4})",
                               "f");
  const JsonReader root(json, "f.json");
  const auto error = [&](const std::function<void()>& action) { return input_error(action); };
  EXPECT_EQ(error([&] { (void)root.field("n").integer(); }),
            "f.json: n: expected an integer (no fraction, no exponent, at most 64 bits), got 1.5");
  EXPECT_EQ(
      error([&] { (void)root.field("e").integer(); }),
      "f.json: e: expected an integer (no fraction, no exponent, at most 64 bits), got 65000.0");
  EXPECT_EQ(error([&] { (void)root.field("i").integer(8, 9); }),
            "f.json: i: expected an integer between 8 and 9, got 7");
  EXPECT_EQ(error([&] { (void)root.field("huge").integer(); }),
            "f.json: huge: expected an integer of at most 9223372036854775807, got "
            "9223372036854775808");
  EXPECT_EQ(error([&] { (void)root.field("s").integer(); }),
            "f.json: s: expected an integer, got \"x\"");
  EXPECT_EQ(error([&] { (void)root.field("s").number(); }),
            "f.json: s: expected a number, got \"x\"");
  EXPECT_EQ(error([&] { (void)root.field("i").text(); }), "f.json: i: expected a string, got 7");
  EXPECT_EQ(error([&] { (void)root.field("i").boolean(); }),
            "f.json: i: expected true or false, got 7");
  EXPECT_EQ(error([&] { (void)root.field("i").array_size(); }),
            "f.json: i: expected an array, got 7");
  EXPECT_EQ(error([&] { (void)root.field("a").object(); }),
            "f.json: a: expected an object, got an array of 2");
  EXPECT_EQ(error([&] { (void)root.field("none"); }),
            "f.json: none: expected this required field, got nothing");
  EXPECT_EQ(error([&] {
              root.allow_fields({"n", "i"});
            }),
            "f.json: expected no fields but n, i, got \"s\"");
  const JsonReader array = root.field("a");
  const JsonReader inner = array.element(1);
  EXPECT_EQ(error([&] { (void)inner.element(0).text(); }),
            "f.json: a[1][0]: expected a string, got 2");
  EXPECT_EQ(root.field("huge").number(), 9223372036854775808.0);
}

Json arbitrary_json(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<std::uint64_t>();
    case 4: {
      const auto number = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
      return std::isfinite(number) ? number : 0.5;
    }
    case 5:
      return *rc::gen::string<std::string>();
    case 6: {
      Json::Array items;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) items.push_back(arbitrary_json(depth - 1));
      return items;
    }
    default: {
      Json object = Json::Object{};
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
        object.set(*rc::gen::string<std::string>(), arbitrary_json(depth - 1));
      }
      return object;
    }
  }
}

RC_GTEST_PROP(Json, ReadsBackAsWritten, ()) {
  const Json json = arbitrary_json(3);
  std::string line;
  try {
    line = to_line(json);
  } catch (const InputError&) {
    RC_DISCARD("not UTF-8");
  }
  RC_ASSERT(parse_json(line, "f") == json);
  RC_ASSERT(to_line(parse_json(line, "f")) == line);
  RC_ASSERT(parse_json(to_document(json), "f") == json);
}

}  // namespace
}  // namespace neuroshard
