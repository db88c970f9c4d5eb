// The exact answer to whether a task fits, and that it is known to be one.
#include "neuroshard/search/memory/exact_memory_fit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "neuroshard/search/memory/memory_fit.h"
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

}  // namespace
}  // namespace neuroshard
