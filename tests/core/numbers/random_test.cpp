// The seeded generator: its sequence never changes, and draws stay in bounds.
#include "neuroshard/core/numbers/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace neuroshard {
namespace {

using testing::ElementsAre;

template <typename Draw>
auto draws(int count, const Draw& draw) {
  std::vector<decltype(draw())> values;
  for (int i = 0; i < count; ++i) values.push_back(draw());
  return values;
}

// Computed with an independent implementation of splitmix64's finaliser and xoshiro256**. Tasks,
// workloads and samples are named by their seeds, so these must never change.
TEST(Random, GoldenSequence) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // splitmix64's first output for the state 0
  EXPECT_EQ(mix64(1), 0x910a2dec89025cc1ULL);
  Random raw(42);
  EXPECT_THAT(draws(5, [&] { return raw(); }),
              ElementsAre(0x20af15fcbd4592a8ULL, 0x339efb2c38771363ULL, 0xbc1ba58a7355f525ULL,
                          0x41a43f4bd66f143eULL, 0xee9fd0329ee7eb27ULL));
  Random below(42);
  EXPECT_THAT(draws(8, [&] { return below.below(1000); }),
              ElementsAre(127, 201, 734, 256, 932, 431, 12, 363));
  Random uniform(42);
  EXPECT_THAT(draws(3, [&] { return uniform.uniform(); }),
              ElementsAre(0.12767159862894162, 0.20164460973361664, 0.7347968543066015));
  Random integer(42);
  EXPECT_THAT(draws(3, [&] { return integer.integer(-500, 499); }), ElementsAre(-373, -299, 234));
}

TEST(Random, GoldenShuffleAndStreams) {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  Random random(42);
  random.shuffle(values);
  EXPECT_THAT(values, ElementsAre(3, 4, 6, 0, 2, 7, 8, 5, 9, 1));
  Random stream = Random::for_stream(7, 3);
  EXPECT_EQ(stream(), 0x3200abeae3a921bbULL);
  EXPECT_EQ(stream(), 0x401f832adfb7c01fULL);
}

TEST(Random, StreamsDiffer) {
  std::vector<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t stream = 0; stream < 500; ++stream) {
      first.push_back(Random::for_stream(seed, stream)());
    }
  }
  std::sort(first.begin(), first.end());
  EXPECT_EQ(std::adjacent_find(first.begin(), first.end()), first.end());
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  Random random(1);
  constexpr int kCount = 200'000;
  double sum = 0.0;
  double normal_sum = 0.0;
  double normal_squares = 0.0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.uniform();
    ASSERT_TRUE(value >= 0.0 && value < 1.0);
    sum += value;
    const double normal = random.normal();
    ASSERT_TRUE(std::isfinite(normal));
    normal_sum += normal;
    normal_squares += normal * normal;
  }
  // Five standard deviations of the means.
  EXPECT_NEAR(sum / kCount, 0.5, 5.0 * std::sqrt(1.0 / 12.0 / kCount));
  EXPECT_NEAR(normal_sum / kCount, 0.0, 5.0 / std::sqrt(kCount));
  EXPECT_NEAR(normal_squares / kCount, 1.0, 5.0 * std::sqrt(2.0 / kCount));
}

TEST(Random, IntegerCoversTheWholeRangeOf64Bits) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  Random random(3);
  const auto values = draws(64, [&] { return random.integer(kLow, kHigh); });
  EXPECT_LT(*std::min_element(values.begin(), values.end()), kLow / 2);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), kHigh / 2);
}

RC_GTEST_PROP(RandomProperty, IntegerStaysInBounds, ()) {
  const auto a = *rc::gen::arbitrary<std::int64_t>();
  const auto b = *rc::gen::arbitrary<std::int64_t>();
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto [low, high] = std::minmax(a, b);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t value = random.integer(low, high);
    RC_ASSERT(value >= low && value <= high);
  }
  RC_ASSERT(random.integer(low, low) == low);
}

RC_GTEST_PROP(RandomProperty, BelowIsBelowAndReachesSmallBoundsEvenly, ()) {
  const auto bound = *rc::gen::inRange<std::uint64_t>(1, 7);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<int> counts(bound, 0);
  constexpr int kCount = 4000;
  for (int i = 0; i < kCount; ++i) ++counts.at(random.below(bound));
  const double expected = static_cast<double>(kCount) / static_cast<double>(bound);
  for (const int count : counts) RC_ASSERT(std::abs(count - expected) <= 6.0 * std::sqrt(expected));
}

RC_GTEST_PROP(RandomProperty, ShuffleKeepsAllValues, ()) {
  const auto values = *rc::gen::arbitrary<std::vector<int>>();
  std::vector<int> shuffled = values;
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  random.shuffle(shuffled);
  RC_ASSERT(std::is_permutation(values.begin(), values.end(), shuffled.begin(), shuffled.end()));
}

}  // namespace
}  // namespace neuroshard
