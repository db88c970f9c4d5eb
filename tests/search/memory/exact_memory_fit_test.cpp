// The exact answer to whether a task fits, and that it is known to be one.
#include "neuroshard/search/memory/exact_memory_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "neuroshard/search/memory/memory_fit.h"
#include "neuroshard/search/memory/memory_needs.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_tasks::make_table;
using testing_tasks::one_host_task;
using testing_tasks::task_of_any_tightness;

TEST(ExactMemoryFit, FindsTheOneWay) {
  // Three narrowest pieces of 1600 bytes and six of 1120: devices of 3840 bytes are full with one
  // and two of them each, and there is no room to spare.
  const Task task = one_host_task({make_table("a", 100, 12), make_table("b", 70, 24)}, 3, 3840);
  const ExactFit fit = fit_exactly(task, 100'000);
  ASSERT_EQ(fit.answer, FitAnswer::fits);
  EXPECT_TRUE(violations(task, {fit.shards}).empty());
}

TEST(ExactMemoryFit, KnowsThatThereIsNone) {
  const Task task = one_host_task({make_table("a", 100, 12), make_table("b", 70, 24)}, 3, 3839);
  EXPECT_EQ(fit_exactly(task, 100'000).answer, FitAnswer::does_not_fit);
  // As many bytes as there are, but in pieces that fill no device.
  const Task odd = one_host_task({make_table("a", 100, 12), make_table("b", 70, 24)}, 2, 5760);
  EXPECT_EQ(fit_exactly(odd, 100'000).answer, FitAnswer::does_not_fit);
  EXPECT_EQ(fit_exactly(odd, 2).answer, FitAnswer::unknown);
}

RC_GTEST_PROP(ExactMemoryFitProperty, NeverContradictsAPlan, ()) {
  const Task task = task_of_any_tightness();
  const ExactFit exact = fit_exactly(task, 20'000);
  if (exact.answer == FitAnswer::fits) {
    RC_ASSERT(violations(task, {exact.shards}).empty());
  } else if (exact.answer == FitAnswer::does_not_fit) {
    RC_ASSERT(!fit_memory(task).feasible);
  }
}

/// `count` tables of these sizes on `world_size` devices of `memory_bytes`.
Task equal_tables(int count, std::int64_t num_embeddings, std::int64_t dim, int world_size,
                  std::int64_t memory_bytes) {
  std::vector<Table> tables;
  for (int t = 0; t < count; ++t) {
    tables.push_back(make_table(std::to_string(t), num_embeddings, dim));
  }
  return one_host_task(std::move(tables), world_size, memory_bytes);
}

TEST(ExactMemoryFit, AsManyDecisionsAsTablesAndDevicesTakeNoStack) {
  // One table too many for devices that hold one each, and for devices that hold six.
  for (const Task& task :
       {equal_tables(310, 10, 4, 309, 200), equal_tables(769, 1000, 50, 128, 1'250'000)}) {
    const ExactFit fit = fit_exactly(task, 100'000);
    EXPECT_NE(fit.answer, FitAnswer::fits);
    EXPECT_FALSE(fit_memory(task).feasible);
  }
  const Task fitting = equal_tables(1000, 1000, 128, 1000, 512'000);
  const ExactFit fit = fit_exactly(fitting, 10'000'000);
  EXPECT_EQ(fit.answer, FitAnswer::fits);
  EXPECT_TRUE(violations(fitting, {fit.shards}).empty());
}

TEST(ExactMemoryFit, WhatWouldDoIsSaidOfManyTablesOnManyDevices) {
  EXPECT_THAT(explain_infeasible(equal_tables(310, 10, 4, 309, 48)).what(),
              testing::HasSubstr("309 devices of 320 B (320B) would do"));
}

TEST(ExactMemoryFit, MemoryOfManyLargeDevicesIsNotSummedPastItsEnd) {
  const Task task = equal_tables(3, 1000, 4, 16, std::int64_t{1} << 60);
  EXPECT_EQ(fit_exactly(task, 1000).answer, FitAnswer::fits);
}

}  // namespace
}  // namespace neuroshard
