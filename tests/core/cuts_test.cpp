// Cuts as text and as sets.
#include <gtest/gtest.h>

#include "neuroshard/core/table.h"

namespace neuroshard {
namespace {

TEST(Cuts, ReadBackFromTheirText) {
  for (int bits = 0; bits < 8; ++bits) {
    const Cuts cuts{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    EXPECT_EQ(cuts_from_string(to_string(cuts)), cuts);
  }
  EXPECT_EQ(to_string(Cuts{}), "columns+rows+replicas");
  EXPECT_EQ(to_string(Cuts{false, false, false}), "none");
  EXPECT_EQ(cuts_from_string("replicas+columns"), (Cuts{true, false, true}));
  for (const char* text :
       {"", "+", "column", "columns+", "+rows", "rows+rows", "rows+none", "all"}) {
    EXPECT_EQ(cuts_from_string(text), std::nullopt) << text;
  }
}

TEST(Cuts, AreSets) {
  const Cuts columns{true, false, false};
  const Cuts rest{false, true, true};
  EXPECT_EQ(columns | rest, Cuts{});
  EXPECT_EQ(columns & rest, (Cuts{false, false, false}));
  EXPECT_EQ(Cuts{} & rest, rest);
}

}  // namespace
}  // namespace neuroshard
