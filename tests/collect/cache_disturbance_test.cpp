// The buffer that disturbs the caches is read in whole blocks, as often as asked for.
#include "neuroshard/collect/compute/cpu/cache_disturbance.h"

#include <gtest/gtest.h>

#include "neuroshard/collect/compute/hardware_info.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(CacheDisturbance, ReadsWholeBlocks) {
  ThreadPool pool(2);
  CacheDisturbance disturbance(3 * kMiB - 1, pool);
  EXPECT_EQ(disturbance.bytes_between_passes(), 3 * kMiB);
  EXPECT_EQ(disturbance.read(3 * kMiB), 3 * kMiB);
  EXPECT_EQ(disturbance.read(1), kMiB);
  EXPECT_EQ(disturbance.read(kMiB + 1), 2 * kMiB);
}

TEST(CacheDisturbance, MayReadItsBufferSeveralTimes) {
  EXPECT_GE(CacheDisturbance::beyond_any_cache(), 256 * kMiB);
  EXPECT_GE(CacheDisturbance::beyond_any_cache(), 8 * cpu_info().l3_bytes);
  ThreadPool pool(1);
  CacheDisturbance disturbance(CacheDisturbance::beyond_any_cache(), pool);
  const std::int64_t bytes = disturbance.bytes_between_passes();
  EXPECT_GE(bytes, CacheDisturbance::beyond_any_cache());
  EXPECT_EQ(disturbance.read(bytes), bytes);
}

}  // namespace
}  // namespace neuroshard
