// Plans and comparisons on a simulated cluster.
#include "neuroshard/evaluate/distributed/cluster_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "neuroshard/core/error.h"

namespace neuroshard {
namespace {

using testing::ExitedWithCode;

NamedTask two_devices(const std::string& name, std::int64_t batch_size) {
  NamedTask named;
  named.name = name;
  named.task.batch_size = batch_size;
  named.task.topology.world_size = 2;
  named.task.topology.local_world_size = 1;
  return named;
}

PlanCost predicted() {
  PlanCost cost;
  cost.devices = {{5.0, 1.0, 1.0, 0, 64}, {9.0, 1.0, 1.0, 0, 64}};
  return cost;
}

bool iteration_has_the_predicted_computation() {
  const PlanIterations simulated =
      simulate_plan(two_devices("a", 4096).task, predicted(), "ethernet-25g");
  return simulated.devices[1].compute_ms() == 9.0 && simulated.devices[0].backward_comm_ms > 0.0 &&
         simulated.cost_ms > 9.0 && simulated.iterations == 1 &&
         critical_path(simulated.devices).last_to_enter == 1;
}

bool the_all_reduce_and_the_additions_are_part_of_it() {
  const PlanIterations simulated =
      simulate_plan(two_devices("a", 4096).task, predicted(), "ethernet-25g", {1 << 20, 0.5});
  const DeviceIteration& last = simulated.devices[1];
  // A ring of two steps, each half of the bytes at 2.9375 GB/s and 0.03 ms.
  const double ring_ms = (1 << 20) / 2.9375e6 + 0.06;
  return std::abs(last.all_reduce_ms / ring_ms - 1.0) < 0.01 && last.forward_comm_ms > 0.5 &&
         simulated.cost_ms >= last.total_ms() && last.total_ms() > 9.5 + last.all_reduce_ms;
}

bool simulated_takes_the_place_of_predicted() {
  ComparisonEntry entry;
  entry.measured_ms = 1.0;
  entry.drift = 2.0;
  entry.less_drift_ms = 1.0;
  entry.device_columns = {64, 64};
  entry.device_compute_ms = {50.0, 90.0};
  std::vector<ComparisonEntry> entries{entry, ComparisonEntry{}, entry};
  entries[2].device_less_drift_ms = {50.0, 60.0};  // slow minutes of the second device alone
  simulate_communication({two_devices("a", 4096)}, "ethernet-25g", entries);
  return entries[0].measured_ms > 90.0 && entries[0].measured_ms < 100.0 &&
         entries[0].less_drift_ms > 45.0 && entries[0].less_drift_ms < 55.0 &&
         !entries[1].measured_ms && entries[2].less_drift_ms > 60.0 &&
         entries[2].less_drift_ms < 70.0;
}

// In processes of their own, as SimGrid simulates once per process.

TEST(ClusterEvaluation, AnIterationHasThePredictedComputation) {
  EXPECT_EXIT(_exit(iteration_has_the_predicted_computation() ? 0 : 1), ExitedWithCode(0), "");
}

TEST(ClusterEvaluation, AnIterationHasTheAllReduceAndTheAdditions) {
  EXPECT_EXIT(_exit(the_all_reduce_and_the_additions_are_part_of_it() ? 0 : 1), ExitedWithCode(0),
              "");
}

TEST(ClusterEvaluation, SimulatedAllToAllsTakeThePlaceOfPredictedOnes) {
  EXPECT_EXIT(_exit(simulated_takes_the_place_of_predicted() ? 0 : 1), ExitedWithCode(0), "");
}

TEST(ClusterEvaluation, OneClusterIsSimulated) {
  EXPECT_NO_THROW(require_one_cluster({two_devices("a", 64), two_devices("b", 64)}));
  try {
    require_one_cluster({two_devices("a", 64), two_devices("b", 128)});
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "b: expected the topology and batch size of a, as one cluster is simulated, got "
                 "another");
  }
}

}  // namespace
}  // namespace neuroshard
