// Sizes and times: valid text is read exactly, and invalid text is refused with its place.
#include "neuroshard/core/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/io/io_test_util.h"

namespace neuroshard {
namespace {

TEST(ParseBytes, ReadsEveryUnit) {
  EXPECT_EQ(parse_bytes("4096", "m"), 4096);
  EXPECT_EQ(parse_bytes("1B", "m"), 1);
  EXPECT_EQ(parse_bytes("4KiB", "m"), 4096);
  EXPECT_EQ(parse_bytes("16GiB", "m"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5TiB", "m"), std::int64_t{3} << 39);
  EXPECT_EQ(parse_bytes("1024PiB", "m"), std::int64_t{1} << 60);
  EXPECT_EQ(parse_bytes("80GB", "m"), 80'000'000'000);
  EXPECT_EQ(parse_bytes("2kB", "m"), 2000);
  EXPECT_EQ(parse_bytes("2KB", "m"), 2000);
  EXPECT_EQ(parse_bytes("3MB", "m"), 3'000'000);
  EXPECT_EQ(parse_bytes("1e3MiB", "m"), std::int64_t{1000} << 20);
  EXPECT_EQ(parse_bytes("0.5KiB", "m"), 512);
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text :
       {"",        "GiB",      "16 GiB", " 16GiB",    "16GiB ",   "16gib", "16G",
        "0",       "0GiB",     "-1GiB",  "+1GiB",     "nan",      "inf",   "1e400",
        "1025PiB", "1e300PiB", "0x10",   "12parsecs", "1.2.3GiB", "0.2"}) {
    EXPECT_EQ(input_error([&] { (void)parse_bytes(text, "--memory"); }),
              std::string("--memory: expected a size such as 80GiB, at least 1 byte, at most "
                          "1024PiB, got \"") +
                  text + "\"");
  }
}

TEST(ParseSeconds, ReadsEveryUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("500ms", "t"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("10s", "t"), 10.0);
  EXPECT_DOUBLE_EQ(parse_seconds("2min", "t"), 120.0);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5h", "t"), 5400.0);
}

TEST(ParseSeconds, RefusesWhatIsNoTime) {
  for (const char* text : {"", "10", "s", "0s", "-1s", "nans", "infs", "1e400s", "10 s", "10S",
                           "1m", "5e-324ms", "1e308h"}) {
    EXPECT_EQ(input_error([&] { (void)parse_seconds(text, "--time-limit"); }),
              std::string("--time-limit: expected a time above 0 such as 500ms or 10s, got \"") +
                  text + "\"");
  }
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1.5 * 0x1p30), "1.50 GiB");
  EXPECT_EQ(format_bytes(0x1p60), "1024.00 PiB");
}

TEST(FormatSeconds, PicksTheUnit) {
  EXPECT_EQ(format_seconds(0.0045), "4.5 ms");
  EXPECT_EQ(format_seconds(1.234), "1.23 s");
  EXPECT_EQ(format_seconds(200), "3 min 20 s");
  EXPECT_EQ(format_seconds(3599.6), "1 h 0 min");
  EXPECT_EQ(format_seconds(7260), "2 h 1 min");
}

RC_GTEST_PROP(UnitsProperty, WholeBytesAreReadBackExactly, ()) {
  const auto bytes = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 52);
  RC_ASSERT(parse_bytes(std::to_string(bytes), "m") == bytes);
  RC_ASSERT(parse_bytes(std::to_string(bytes) + "B", "m") == bytes);
}

RC_GTEST_PROP(UnitsProperty, AnyTextIsReadOrRefusedInOneLine, ()) {
  const std::string text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("0123456789.eE+-KMGTPiBbmsnhaf ")));
  try {
    const std::int64_t bytes = parse_bytes(text, "m");
    RC_ASSERT(bytes >= 1 && bytes <= std::int64_t{1} << 60);
  } catch (const InputError&) {
  }
  try {
    const double seconds = parse_seconds(text, "t");
    RC_ASSERT(std::isfinite(seconds) && seconds > 0.0);
  } catch (const InputError&) {
  }
}

TEST(FormatCount, OneAndMany) {
  EXPECT_EQ(format_count(0, "task"), "0 tasks");
  EXPECT_EQ(format_count(1, "task"), "1 task");
  EXPECT_EQ(format_count(2, "task"), "2 tasks");
}

}  // namespace
}  // namespace neuroshard
