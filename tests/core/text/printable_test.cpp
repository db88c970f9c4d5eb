// Text for terminals: nothing that they obey, everything else as it was.
#include "neuroshard/core/text/printable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace neuroshard {
namespace {

TEST(Printable, PlainTextStaysAsItIs) {
  for (const char* text : {"", "user id", "\"a\" \\ b", "größe", "表", "\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatTerminalsObeyIsShown) {
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\x0ab\\x0d\\x09c");
  EXPECT_EQ(printable("\x1b[31mred\a\x7f"), "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0"), "\\u0080\\u009b\\u009f\xC2\xA0");
  EXPECT_EQ(printable("\xE2\x80\xAE\xE2\x81\xA9\xE2\x80\xA8\xE2\x80\x90"),
            "\\u202e\\u2069\\u2028\xE2\x80\x90");
}

TEST(Printable, BytesThatAreNoTextAreShown) {
  EXPECT_EQ(printable("a\x9b"
                      "31m"),
            "a\\x9b31m");
  EXPECT_EQ(printable("\xC2"), "\\xc2");
  EXPECT_EQ(printable("\xE2\x80"), "\\xe2\\x80");
}

TEST(Printable, TextForJsonIsEscapedOnlyWhereItIsNoUtf8) {
  for (const char* text : {"", "a\nb", "größe", "\xC2\x9B"}) EXPECT_EQ(as_utf8(text), text);
  EXPECT_EQ(as_utf8("/m\xff\n\x64"), "/m\\xff\\x0ad");
}

RC_GTEST_PROP(PrintableProperty, NoByteIsLeftThatEndsALineOrBeginsASequence,
              (const std::string& text)) {
  const std::string shown = printable(text);
  RC_ASSERT(std::none_of(shown.begin(), shown.end(),
                         [](unsigned char c) { return c < 0x20 || c == 0x7F; }));
  RC_ASSERT(shown.find("\xC2\x9B") == std::string::npos);
  RC_ASSERT(printable(shown) == shown);
}

}  // namespace
}  // namespace neuroshard
