// What a beam would keep.
#include "neuroshard/search/beam/kept_costs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace neuroshard {
namespace {

TEST(KeptCosts, HasRoomAtFirst) {
  KeptCosts kept(2);
  EXPECT_EQ(kept.highest(), std::numeric_limits<double>::infinity());
  kept.add(3.0);
  EXPECT_EQ(kept.highest(), std::numeric_limits<double>::infinity());
  kept.add(5.0);
  EXPECT_EQ(kept.highest(), 5.0);
}

TEST(KeptCosts, ALimitHoldsWithRoomAndWithoutIt) {
  KeptCosts kept(1);
  kept.limit(4.0);
  EXPECT_EQ(kept.highest(), 4.0);
  kept.add(6.0);  // not wanted
  EXPECT_EQ(kept.highest(), 4.0);
  EXPECT_EQ(kept.of_full_beam(), std::numeric_limits<double>::infinity());
  kept.add(3.0);
  EXPECT_EQ(kept.highest(), 3.0);
  EXPECT_EQ(kept.of_full_beam(), 3.0);
}

TEST(KeptCosts, ALimitBelowWhatIsKeptCounts) {
  KeptCosts kept(1);
  kept.add(6.0);
  kept.limit(4.0);
  EXPECT_EQ(kept.highest(), 4.0);
}

RC_GTEST_PROP(KeptCosts, AreTheLowestOfAll, (std::vector<unsigned char> given)) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 6);
  KeptCosts kept(width);
  std::vector<double> all(given.begin(), given.end());
  for (const double cost : all) kept.add(cost);
  std::sort(all.begin(), all.end());
  RC_ASSERT(kept.highest() ==
            (all.size() < width ? std::numeric_limits<double>::infinity() : all[width - 1]));
}

}  // namespace
}  // namespace neuroshard
