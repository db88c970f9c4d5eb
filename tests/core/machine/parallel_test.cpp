// The pool of threads: every index once, exceptions reach the caller, and the pool stays usable.
#include "neuroshard/core/machine/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "neuroshard/core/error.h"

namespace neuroshard {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, CallsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (const std::size_t count : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    std::atomic<bool> workers_in_range{true};
    pool.for_each(count, [&](std::size_t i, int worker) {
      ++calls.at(i);
      if (worker < 0 || worker >= pool.num_threads()) workers_in_range = false;
    });
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
    EXPECT_TRUE(workers_in_range);
  }
}

TEST_P(ThreadPoolTest, IsReusedForManyShortLoops) {
  ThreadPool pool(GetParam());
  std::atomic<std::int64_t> sum{0};
  for (int loop = 0; loop < 500; ++loop) {
    pool.for_each(4, [&](std::size_t i, int) { sum += static_cast<std::int64_t>(i); });
    ASSERT_EQ(sum, 6 * (loop + 1));  // all done when it returns
  }
}

TEST_P(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> calls{0};
    try {
      pool.for_each(100, [&](std::size_t i, int) {
        ++calls;
        if (i == 10) throw std::runtime_error("index " + std::to_string(i));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "index 10");
    }
    EXPECT_LE(calls, 100);
    std::atomic<int> after{0};
    pool.for_each(50, [&](std::size_t, int) { ++after; });
    EXPECT_EQ(after, 50);
  }
}

TEST_P(ThreadPoolTest, ManyExceptionsAreOne) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.for_each(64, [](std::size_t, int) { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST_P(ThreadPoolTest, WhatBodiesWriteIsSeenAfterwards) {
  ThreadPool pool(GetParam());
  std::vector<std::size_t> squares(1000);  // plain memory: ThreadSanitizer watches the hand-over
  for (int repeat = 0; repeat < 10; ++repeat) {
    pool.for_each(squares.size(), [&](std::size_t i, int) { squares[i] += i * i; });
  }
  for (std::size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], 10 * i * i);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 5));

TEST(ThreadPool, TakesOneThreadPerCoreByDefault) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_EQ(ThreadPool(0).num_threads(), available_cores());
  EXPECT_EQ(ThreadPool(-3).num_threads(), available_cores());
}

TEST(ThreadPool, AllThreadsWork) {
  ThreadPool pool(3);
  std::atomic<int> arrived{0};
  std::vector<int> worker_of(3, -1);
  // Each body waits for the other two, so that no thread can take two of them.
  pool.for_each(3, [&](std::size_t i, int worker) {
    worker_of[i] = worker;
    ++arrived;
    while (arrived < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::sort(worker_of.begin(), worker_of.end());
  EXPECT_EQ(worker_of, (std::vector<int>{0, 1, 2}));
}

/// Cores that the calling thread may run on.
std::vector<int> own_cores() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  std::vector<int> numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) numbers.push_back(core);
  }
  return numbers;
}

TEST(ThreadPool, TimingThreadsHaveACoreEachWhileThePoolLives) {
  const std::vector<int> before = own_cores();
  const auto num_threads = static_cast<int>(before.size());
  {
    ThreadPool pool(num_threads, ThreadPlacement::one_per_core);
    std::vector<std::vector<int>> cores(num_threads);
    std::atomic<int> arrived{0};
    pool.for_each(num_threads, [&](std::size_t, int worker) {
      cores[worker] = own_cores();
      ++arrived;
      while (arrived < num_threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    std::set<int> distinct;
    for (const std::vector<int>& own : cores) {
      ASSERT_EQ(own.size(), 1u);
      distinct.insert(own[0]);
    }
    EXPECT_EQ(distinct.size(), before.size());
  }
  EXPECT_EQ(own_cores(), before);
}

TEST(ThreadPool, WorkBetweenTimedLoopsHasAllCores) {
  const std::vector<int> before = own_cores();
  {
    const AllCores without_a_pool;
    EXPECT_EQ(own_cores(), before);
  }
  {
    ThreadPool pool(0, ThreadPlacement::one_per_core);
    const std::vector<int> own = own_cores();
    ASSERT_EQ(own.size(), 1u);
    {
      const AllCores all;
      EXPECT_EQ(own_cores(), before);
      EXPECT_EQ(ThreadPool().num_threads(), static_cast<int>(before.size()));
    }
    EXPECT_EQ(own_cores(), own);
    {
      const ThreadPool second(1, ThreadPlacement::one_per_core);
      const AllCores all;
      EXPECT_EQ(own_cores(), before) << "those before the first of two pools";
    }
    EXPECT_EQ(own_cores(), own);
  }
  EXPECT_EQ(own_cores(), before);
  const AllCores after_the_pools;
  EXPECT_EQ(own_cores(), before);
}

TEST(ThreadPool, SaysWhenTheMachineHasNoMoreThreads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need all the addresses there are";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit = before;
  limit.rlim_cur = pages * 4096 + (std::size_t{64} << 20);  // room for a few stacks
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  std::string message;
  try {
    ThreadPool pool(1000);
  } catch (const MachineError& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(message, testing::StartsWith("threads: expected 1000, got "));
  std::atomic<int> calls{0};
  ThreadPool(4).for_each(10, [&](std::size_t, int) { ++calls; });
  EXPECT_EQ(calls, 10);
}

TEST(ThreadPool, PoolsOfOneProcessDoNotMix) {
  ThreadPool outer(2);
  std::atomic<int> calls{0};
  outer.for_each(4, [&](std::size_t, int) {
    ThreadPool inner(2);
    inner.for_each(8, [&](std::size_t, int) { ++calls; });
  });
  EXPECT_EQ(calls, 32);
}

}  // namespace
}  // namespace neuroshard
