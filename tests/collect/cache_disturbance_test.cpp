// The caches are disturbed as much as is missing, and no more.
#include "neuroshard/collect/compute/cpu/cache_disturbance.h"

#include <gtest/gtest.h>

#include "neuroshard/collect/compute/hardware_info.h"

namespace neuroshard {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(CacheDisturbance, TouchesWhatOthersHaveNot) {
  ThreadPool pool(2);
  CacheDisturbance disturbance(3 * kMiB, pool);
  EXPECT_EQ(disturbance.bytes_touched(), 0);
  disturbance.displace_since(0);
  EXPECT_EQ(disturbance.bytes_touched(), 3 * kMiB);
  const std::int64_t pass = disturbance.bytes_touched();
  disturbance.touched(2 * kMiB + 1);
  disturbance.displace_since(pass);  // whole blocks of 1 MiB
  EXPECT_EQ(disturbance.bytes_touched(), pass + 3 * kMiB + 1);
  disturbance.displace_since(pass);
  EXPECT_EQ(disturbance.bytes_touched(), pass + 3 * kMiB + 1);
  disturbance.touched(5 * kMiB);
  const std::int64_t other = disturbance.bytes_touched();
  disturbance.displace_since(pass);
  EXPECT_EQ(disturbance.bytes_touched(), other);
}

TEST(CacheDisturbance, MayReadItsBufferSeveralTimes) {
  EXPECT_GE(CacheDisturbance::beyond_any_cache(), 256 * kMiB);
  EXPECT_GE(CacheDisturbance::beyond_any_cache(), 8 * cpu_info().l3_bytes);
  ThreadPool pool(1);
  CacheDisturbance disturbance(CacheDisturbance::beyond_any_cache(), pool);
  disturbance.displace_since(0);
  EXPECT_EQ(disturbance.bytes_touched(), CacheDisturbance::beyond_any_cache());
}

}  // namespace
}  // namespace neuroshard
