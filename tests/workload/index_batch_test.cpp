// Drawn batches: bounds, bag lengths, determinism, scattering.
#include "neuroshard/workload/reuse/index_batch.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "make_tables.h"
#include "neuroshard/workload/reuse/alias_table.h"

namespace neuroshard {
namespace {

TEST(IndexSampler, IndicesAndOffsetsStayInBounds) {
  EXPECT_TRUE(rc::check("every index is a row, every bag has the right length", [] {
    const auto rows = *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 50),
                                      rc::gen::inRange<std::int64_t>(1, kMaxEmbeddings + 1),
                                      rc::gen::just(kMaxEmbeddings));
    const double exponent = *rc::gen::element(0.0, 1e-9, 0.5, 1.0, 1.1, 10.0);
    const double pooling = *rc::gen::element(0.001, 0.5, 1.0, 3.7);
    const auto batch_size = *rc::gen::inRange<std::int64_t>(1, 200);
    const IndexSampler sampler(zipf_table(rows, pooling, exponent), batch_size);
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    IndexBatch batch;
    sampler.draw(batch_size, random, batch);
    RC_ASSERT(batch.offsets.size() == static_cast<std::size_t>(batch_size) + 1);
    RC_ASSERT(batch.offsets.front() == 0);
    RC_ASSERT(batch.offsets.back() == static_cast<std::int64_t>(batch.indices.size()));
    for (std::size_t bag = 0; bag + 1 < batch.offsets.size(); ++bag) {
      const auto length = static_cast<double>(batch.offsets[bag + 1] - batch.offsets[bag]);
      RC_ASSERT(length == std::floor(pooling) || length == std::ceil(pooling));
    }
    for (const std::int64_t index : batch.indices) RC_ASSERT(index >= 0 && index < rows);
  }));
}

TEST(IndexSampler, EveryRowOfASmallTableIsReached) {
  for (std::int64_t rows = 1; rows <= 64; ++rows) {
    Random random(1);
    IndexBatch batch;
    IndexSampler(make_table(rows, 40.0), 64).draw(64, random, batch);
    const std::set<std::int64_t> distinct(batch.indices.begin(), batch.indices.end());
    EXPECT_EQ(distinct.size(), static_cast<std::size_t>(rows));
  }
}

TEST(IndexSampler, SameSeedSameBatchWhateverWasDrawnBefore) {
  const IndexSampler sampler(class_table(2.5), 1'000);
  Random first(7);
  Random second(7);
  IndexBatch fresh;
  IndexBatch reused;
  Random other(8);
  sampler.draw(5'000, other, reused);
  sampler.draw(1'000, first, fresh);
  sampler.draw(1'000, second, reused);
  EXPECT_EQ(fresh.indices, reused.indices);
  EXPECT_EQ(fresh.offsets, reused.offsets);
}

TEST(IndexSampler, MeanBagLengthIsThePoolingFactor) {
  Random random(9);
  IndexBatch batch;
  IndexSampler(make_table(1'000, 12.3), 100'000).draw(100'000, random, batch);
  EXPECT_NEAR(static_cast<double>(batch.indices.size()) / 1e5, 12.3, 0.01);
}

TEST(IndexSampler, PopularRowsAreScattered) {
  Random random(10);
  IndexBatch batch;
  IndexSampler(zipf_table(1'000'000, 20.0, 1.5), 4'096).draw(4'096, random, batch);
  const auto in_first_half = std::count_if(batch.indices.begin(), batch.indices.end(),
                                           [](std::int64_t row) { return row < 500'000; });
  const double share =
      static_cast<double>(in_first_half) / static_cast<double>(batch.indices.size());
  EXPECT_GT(share, 0.2);
  EXPECT_LT(share, 0.8);
  std::set<std::int64_t> distinct(batch.indices.begin(), batch.indices.end());
  EXPECT_GT(*distinct.rbegin(), 990'000);
}

TEST(RankScatter, TheHottestRanksLieEvenlyOverAllRows) {
  // Of as many ranks as there are slices of equal rows, no slice has more than two, as far as the
  // golden ratio fits.
  for (const std::uint64_t rows :
       {1'000'000ULL, 40'000'000ULL, 1'000'000'000ULL, 3'000'000'000ULL}) {
    for (const std::uint64_t seed : {0ULL, 123'456'789'012ULL}) {
      const RankScatter scatter(rows, seed);
      for (const std::uint64_t slices : {2ULL, 8ULL, 64ULL}) {
        std::vector<int> ranks_in(slices, 0);
        for (std::uint64_t rank = 0; rank < slices; ++rank) {
          ++ranks_in[static_cast<std::uint64_t>(scatter(rank)) * slices / rows];
        }
        EXPECT_LE(*std::max_element(ranks_in.begin(), ranks_in.end()), 2)
            << rows << " rows, " << slices << " slices";
      }
    }
  }
}

TEST(RankScatter, IsABijectionAtAnySize) {
  EXPECT_TRUE(rc::check("consecutive ranks have rows of their own", [] {
    const auto rows = *rc::gen::inRange<std::uint64_t>(1, kMaxEmbeddings + 1);
    const RankScatter scatter(rows, *rc::gen::arbitrary<std::uint64_t>());
    const auto first = *rc::gen::inRange<std::uint64_t>(0, rows);
    const std::uint64_t count = std::min<std::uint64_t>(rows - first, 1000);
    std::set<std::int64_t> hit;
    for (std::uint64_t rank = first; rank < first + count; ++rank) {
      const std::int64_t row = scatter(rank);
      RC_ASSERT(row >= 0 && static_cast<std::uint64_t>(row) < rows);
      RC_ASSERT(hit.insert(row).second);
    }
  }));
}

TEST(IndexBatch, ASliceKeepsTheLookupsOfItsRows) {
  IndexBatch batch{{3, 9, 4, 2, 5, 3}, {0, 3, 3, 5, 6}};
  keep_rows({3, 2}, batch);
  EXPECT_EQ(batch.indices, (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 2, 2, 2, 3}));
  keep_rows({7, 100}, batch);
  EXPECT_TRUE(batch.indices.empty());
  EXPECT_EQ(batch.offsets, (std::vector<std::int64_t>{0, 0, 0, 0, 0}));
}

TEST(IndexBatch, SlicesHaveAllLookupsBetweenThem) {
  Random random(11);
  IndexBatch batch;
  IndexSampler(zipf_table(1'000, 7.5, 1.1), 512).draw(512, random, batch);
  std::size_t lookups = 0;
  for (const RowRange rows : {RowRange{0, 1}, RowRange{1, 400}, RowRange{401, 599}}) {
    IndexBatch slice = batch;
    keep_rows(rows, slice);
    lookups += slice.indices.size();
    EXPECT_EQ(slice.offsets.size(), batch.offsets.size());
  }
  EXPECT_EQ(lookups, batch.indices.size());
}

TEST(AliasTable, OutcomesHaveTheirWeights) {
  const std::vector<double> weights = {0.0, 5.0, 0.1, 2.9, 0.0, 2.0};
  const AliasTable choose(weights);
  Random random(2);
  std::vector<double> counts(weights.size());
  constexpr int kDraws = 1'000'000;
  for (int i = 0; i < kDraws; ++i) counts[choose(random())] += 1.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(counts[i] / kDraws, weights[i] / 10.0, 0.003) << i;
    EXPECT_TRUE(weights[i] > 0.0 || counts[i] == 0.0) << i;
  }
}

}  // namespace
}  // namespace neuroshard
