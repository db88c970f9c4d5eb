// How far an ensemble's networks are apart about a set.
#include "neuroshard/refine/disagreement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "neuroshard/cost/simulator.h"
#include "tests/search/arbitrary_simulator.h"

namespace neuroshard {
namespace {

using testing_networks::random_model;
using testing_tasks::analytic_compute;
using testing_tasks::make_simulator;
using testing_tasks::make_table;
using testing_tasks::one_host_task;

TEST(Disagreement, IsTheRangeOfTheNetworksRelativeToTheirMean) {
  const Task task =
      one_host_task({make_table("a", 1'000, 64, 5.0), make_table("b", 100'000, 32)}, 1, 1 << 30);
  const auto model = random_model(ComputeArchitecture::bounded_loads, 2);
  ASSERT_GT(model->num_members(), 1);
  const auto about = disagreement_about(model, task.tables, task.batch_size, task.optimizer);
  const std::vector<Piece> pieces{{0, 64}, {1, 12}, {1, 20, 0.25}};

  // As a simulator prices a device with these pieces.
  const Simulator simulator = make_simulator(task, model);
  const MemberRange range = simulator.member_ranges({{{0, 0, 64, 0}, {1, 0, 12, 0}}}).front();
  EXPECT_GT(range.spread(), 0.0);
  const double two = about(std::span(pieces).first(2));
  EXPECT_GE(two, range.spread() * 0.5);
  EXPECT_LE(two, range.spread() * 2.0);  // relative to another middle
  EXPECT_NE(about(pieces), two);
  EXPECT_EQ(about({}), 0.0);
}

TEST(Disagreement, OfASingleModelIsNone) {
  const Task task = one_host_task({make_table("a", 1'000, 64)}, 1, 1 << 30);
  const auto about =
      disagreement_about(analytic_compute(), task.tables, task.batch_size, task.optimizer);
  EXPECT_EQ(about(std::vector<Piece>{{0, 64}}), 0.0);
}

}  // namespace
}  // namespace neuroshard
