// How far devices of a plan differ, from sets whose scatter is known.
#include "neuroshard/train/compute/device_scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "neuroshard/core/numbers/random.h"

namespace neuroshard {
namespace {

constexpr double kScatter = 0.04;

/// Plans of `devices` sets; each plan's costs are another, all of them off by what only it has in
/// common.
std::vector<PlannedCost> costs_of_plans(int plans, int devices, double scatter = kScatter) {
  Random random(3);
  std::vector<PlannedCost> costs;
  for (int plan = 0; plan < plans; ++plan) {
    const double cost_ms = std::exp(3.0 * random.normal());
    const double common = std::exp(0.3 * random.normal());
    for (int device = 0; device < devices; ++device) {
      const double predicted_ms = cost_ms * random.uniform(0.97, 1.0);
      costs.push_back({static_cast<std::int64_t>(costs.size()), predicted_ms,
                       predicted_ms * common * std::exp(scatter * random.normal())});
    }
  }
  return costs;
}

TEST(DeviceScatterTest, IsThatOfDevicesNotOfPlans) {
  for (const int devices : {4, 8, 16}) {
    const auto found = device_scatter(costs_of_plans(4000 / devices, devices));
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->scatter, kScatter, 0.1 * kScatter) << devices;
    EXPECT_LE(found->pairs, 4000U * 7 / 8);
    EXPECT_GE(found->pairs, 4000U * 2 / 3);
  }
}

TEST(DeviceScatterTest, HasNothingOfDevicesThatArePlannedUnlike) {
  std::vector<PlannedCost> costs = costs_of_plans(1000, 2);
  // Each second device has a quarter to do, of which the model knows little.
  Random random(4);
  for (std::size_t i = 1; i < costs.size(); i += 2) {
    costs[i].predicted_ms *= 0.25;
    costs[i].measured_ms *= 0.25 * std::exp(random.normal());
  }
  const auto found = device_scatter(costs);
  EXPECT_TRUE(!found || found->pairs < 200);  // of plans that happen to be alike
}

TEST(DeviceScatterTest, DoesNotDependOnTheOrderOfTheSets) {
  std::vector<PlannedCost> costs = costs_of_plans(50, 8);
  const auto found = device_scatter(costs);
  std::reverse(costs.begin(), costs.end());
  const auto reversed = device_scatter(costs);
  ASSERT_TRUE(found && reversed);
  EXPECT_EQ(found->scatter, reversed->scatter);
  EXPECT_EQ(found->pairs, reversed->pairs);
}

TEST(DeviceScatterTest, IsNotTakenFromFewPairs) {
  EXPECT_FALSE(device_scatter(std::vector<PlannedCost>{}));
  EXPECT_FALSE(device_scatter(costs_of_plans(4, 8)));  // 28 pairs
  EXPECT_TRUE(device_scatter(costs_of_plans(6, 8)));   // 42
}

// Left out together, neighbours are in one block.
TEST(DeviceScatterTest, PairsAreOfOneBlockWithoutGaps) {
  std::vector<PlannedCost> costs = costs_of_plans(100, 8);
  for (PlannedCost& cost : costs) cost.place += kPlannedBlock / 2;  // plans across two blocks
  const auto across = device_scatter(costs);
  ASSERT_TRUE(across);
  EXPECT_GE(across->pairs, 600U);
  EXPECT_LE(across->pairs, 615U);  // a few next to each other are of plans that are alike
  for (PlannedCost& cost : costs) cost.place *= 2;
  EXPECT_FALSE(device_scatter(costs));
}

// As the published network may predict.
TEST(DeviceScatterTest, LeavesOutWhatIsNotPredictedAboveZero) {
  std::vector<PlannedCost> costs = costs_of_plans(100, 8);
  const auto found = device_scatter(costs);
  for (std::size_t plan = 0; plan < 50; ++plan) {
    for (std::size_t device = 0; device < 8; ++device) {
      costs[8 * plan + device].predicted_ms *= plan % 2 == 0 ? -1.0 : 0.0;
    }
  }
  const auto left = device_scatter(costs);
  ASSERT_TRUE(found && left);
  EXPECT_LE(left->pairs, found->pairs - 50U * 7);
  EXPECT_NEAR(left->scatter, kScatter, 0.15 * kScatter);
}

TEST(DeviceScatterTest, IsNoNumberThatMeansNothing) {
  EXPECT_FALSE(device_scatter(costs_of_plans(100, 8, 0.0)));
  EXPECT_FALSE(device_scatter(costs_of_plans(100, 8, 5.0)));
}

}  // namespace
}  // namespace neuroshard
