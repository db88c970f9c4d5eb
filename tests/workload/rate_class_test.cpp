// Cutting fractional rows into whole ones.
#include "neuroshard/workload/reuse/rate_class.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace neuroshard {
namespace {

TEST(WholeRows, WholeClassesStayAsTheyAre) {
  const std::vector<AccessClass> classes = whole_rows({{1.0, 60.0}, {40.0, 1.0}});
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].num_embeddings, 1);
  EXPECT_DOUBLE_EQ(classes[0].access_share, 0.4);
  EXPECT_EQ(classes[1].num_embeddings, 60);
  EXPECT_DOUBLE_EQ(classes[1].access_share, 0.6);
}

TEST(WholeRows, FractionsOfHotRowsShareARow) {
  const std::vector<AccessClass> classes = whole_rows({{100.0, 0.5}, {10.0, 2.5}});
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].num_embeddings, 1);
  EXPECT_DOUBLE_EQ(classes[0].access_share, 55.0 / 75.0);
  EXPECT_EQ(classes[1].num_embeddings, 2);
}

TEST(WholeRows, KeepRowsAndLookups) {
  EXPECT_TRUE(rc::check("rows within one half, shares add up to 1, rates fall", [] {
    const auto raw = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
        rc::gen::pair(rc::gen::inRange(1, 100'000), rc::gen::inRange(1, 1'000))));
    std::vector<RateClass> classes;
    double rows = 0.0;
    for (const auto& [rate, hundredths] : raw) {
      classes.push_back({rate / 10.0, hundredths / 100.0});
      rows += hundredths / 100.0;
    }
    double whole = 0.0;
    double share = 0.0;
    for (const AccessClass& access_class : whole_rows(classes)) {
      RC_ASSERT(access_class.num_embeddings >= 1);
      RC_ASSERT(access_class.access_share > 0.0);
      whole += static_cast<double>(access_class.num_embeddings);
      share += access_class.access_share;
    }
    RC_ASSERT(whole == 1.0 || std::abs(whole - rows) <= 0.5 + 1e-6);
    RC_ASSERT(std::abs(share - 1.0) < 1e-9);
  }));
}

}  // namespace
}  // namespace neuroshard
