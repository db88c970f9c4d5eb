// Packed lookups come out grouped by row, in batch order within a row.
#include "neuroshard/collect/compute/cpu/lookup_sort.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"

namespace neuroshard {
namespace {

RC_GTEST_PROP(LookupSort, IsAStableSortByRow, (std::uint64_t seed)) {
  Random random(seed);
  const std::int64_t rows = random.integer(1, std::int64_t{1} << random.integer(1, 40));
  const std::int64_t bags = random.integer(1, 5000);
  const KeyLayout layout = key_layout(rows, bags);
  std::vector<kernels::LookupKey> keys;
  for (std::int64_t bag = 0; bag < bags; ++bag) {
    keys.push_back((random.below(rows) << layout.bag_bits) | static_cast<std::uint64_t>(bag));
  }
  std::vector<kernels::LookupKey> expected = keys;
  std::sort(expected.begin(), expected.end());
  std::vector<kernels::LookupKey> scratch(keys.size());
  const auto sorted = sort_by_row(keys, scratch, layout.row_bits, layout.bag_bits);
  RC_ASSERT(std::equal(sorted.begin(), sorted.end(), expected.begin(), expected.end()));
}

TEST(LookupSort, RefusesRowsAndBagsBeyond64Bits) {
  EXPECT_NO_THROW((void)key_layout(std::int64_t{1} << 34, std::int64_t{1} << 30));
  EXPECT_THROW((void)key_layout(std::int64_t{1} << 40, std::int64_t{1} << 30), InputError);
}

}  // namespace
}  // namespace neuroshard
