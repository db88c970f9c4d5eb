// How far an ensemble's networks are apart about a set.
#include "neuroshard/refine/disagreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
  // Of two networks: their mean is the middle that a spread is relative to.
  const auto model = random_model(ComputeArchitecture::bounded_loads, 4);
  ASSERT_EQ(model->num_members(), 2);
  const auto about = disagreement_about(model, task.tables, task.batch_size, task.optimizer);
  const std::vector<Piece> pieces{{0, 64}, {1, 12}, {1, 20, 0.25}};

  // As a simulator prices a device with these pieces.
  const Simulator simulator = make_simulator(task, model);
  ShardingPlan plan{{{0, 0, 64, 0}, {1, 0, 12, 0}}};
  const double of_two = simulator.member_ranges(plan).front().spread();
  EXPECT_GT(of_two, 1e-3);
  EXPECT_NEAR(about(std::span(pieces).first(2)), of_two, 1e-6 * of_two);
  plan.shards.push_back({1, 12, 20, 0, 0, 25'000});
  const double of_all = simulator.member_ranges(plan).front().spread();
  EXPECT_GT(std::abs(of_all - of_two), 1e-3 * of_two);
  EXPECT_NEAR(about(pieces), of_all, 1e-6 * of_all);
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
