// The median of a few numbers.
#include "neuroshard/core/numbers/median.h"

#include <gtest/gtest.h>

namespace neuroshard {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({7.0}), 7.0);
  EXPECT_EQ(median({3.0, 1.0}), 2.0);
  EXPECT_EQ(median({3.0, 1.0, 20.0}), 3.0);
  EXPECT_EQ(median({4.0, 1.0, 20.0, 3.0}), 3.5);
}

}  // namespace
}  // namespace neuroshard
