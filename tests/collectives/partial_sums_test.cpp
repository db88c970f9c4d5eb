// Partial sums added up by any number of threads.
#include "neuroshard/collect/communication/partial_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "neuroshard/collect/communication/communication_case.h"

namespace neuroshard {
namespace {

TEST(PartialSums, AreAddedUpSampleBySampleAndColumnByColumn) {
  constexpr std::int64_t kSamples = 1000;
  constexpr std::int64_t kStride = 7;
  std::vector<std::vector<float>> blocks(3);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::int64_t i = 0; i < kSamples * kStride; ++i) {
      blocks[b].push_back(static_cast<float>((b + 1) * 10'000 + i));
    }
  }
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    std::vector<float> out(kSamples * 5, -1.0F);
    std::vector<PartialSums> sums(2);
    for (const auto& block : blocks) sums[0].parts.push_back({block.data() + 2, kStride});
    sums[0].sum = {out.data() + 1, 5};
    sums[0].num_columns = 3;
    sums[1].parts = {{blocks[0].data(), kStride}};
    sums[1].sum = {out.data() + 4, 5};
    sums[1].num_columns = 1;
    add_partial_sums(sums, kSamples, pool);
    for (std::int64_t s = 0; s < kSamples; ++s) {
      EXPECT_EQ(out[s * 5], -1.0F);  // of nobody
      for (std::int64_t c = 0; c < 3; ++c) {
        float expected = 0.0F;
        for (const auto& block : blocks) expected += block[s * kStride + 2 + c];
        ASSERT_EQ(out[s * 5 + 1 + c], expected) << s << ", " << c;
      }
      ASSERT_EQ(out[s * 5 + 4], blocks[0][s * kStride]);
    }
  }
}

/// Of a batch that large, one table alone would be 9 GB.
TEST(PartialSums, AreDrawnOfSoMuchMemoryAtMost) {
  CommunicationSamplingOptions options;
  options.world_size = 2;
  options.batch_size = std::int64_t{1} << 24;
  for (std::int64_t index = 0; index < 200; ++index) {
    const PartialSumsCase drawn = sample_partial_sums(options, index);
    EXPECT_GE(drawn.num_samples, 1);
    EXPECT_GT(drawn.bytes(), std::int64_t{1} << 26);
    EXPECT_LE(drawn.bytes(), std::int64_t{1} << 28);
  }
}

TEST(PartialSums, ColumnsSideBySideAreOneSum) {
  std::vector<float> a(40), b(40), out(40);
  const auto columns = [&](std::int64_t first, std::int64_t second, std::int64_t sum,
                           std::int64_t count) {
    return PartialSums{
        {{a.data() + first, 10}, {b.data() + second, 10}}, {out.data() + sum, 10}, count};
  };
  // The third has its second part elsewhere, the fourth follows the third.
  const std::vector<PartialSums> sums =
      joined({columns(0, 2, 0, 3), columns(3, 5, 3, 1), columns(4, 7, 4, 2), columns(6, 9, 6, 1)});
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].num_columns, 4);
  EXPECT_EQ(sums[1].num_columns, 3);
  EXPECT_EQ(sums[1].parts[1].values, b.data() + 7);
}

TEST(PartialSums, NothingIsNothing) {
  ThreadPool pool(1);
  add_partial_sums({}, 10, pool);
  float sum = 5.0F;
  const PartialSums none{{{&sum, 1}}, {&sum, 1}, 1};
  add_partial_sums({&none, 1}, 0, pool);
  EXPECT_EQ(sum, 5.0F);
}

}  // namespace
}  // namespace neuroshard
