// A plan never costs less for having more to do: columns or computation added to a device raise its
// predicted cost or leave it, whatever the communication model has learned.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/cost/compute/analytic_compute.h"
#include "neuroshard/cost/simulator.h"
#include "tests/cost/arbitrary_communication.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_networks::CommunicationModel;
using testing_networks::random_communication_network;
using testing_networks::shipped_communication;
using testing_networks::two_clusters;
using testing_tasks::make_table;
using testing_tasks::make_topology;

/// Sums of the same times in another order.
constexpr double kOrderRounding = 1e-12;

/// A plan before its all-to-alls are priced.
struct Plan {
  Task task;
  std::vector<double> compute_ms;
  std::vector<double> columns;
};

/// Up to 16 devices, which wait for each other or hardly do, with loads alike or far apart.
Plan arbitrary_device_columns(const std::vector<int>& devices_per_host) {
  const int per_host = *rc::gen::elementOf(devices_per_host);
  const int hosts = *rc::gen::inRange(1, 16 / per_host + 1);
  Plan plan;
  plan.task.batch_size = *rc::gen::element<std::int64_t>(1, 512, 16'384, 65'536, kMaxBatchSize);
  plan.task.tables = {make_table("t", 10, 4)};
  plan.task.topology = make_topology(hosts * per_host, per_host);
  const double longest_ms = *rc::gen::element(0.0, 0.01, 1.0, 20.0, 1e9);
  const int fewest = *rc::gen::element(0, 300, 900);
  for (int d = 0; d < hosts * per_host; ++d) {
    plan.compute_ms.push_back(longest_ms * *rc::gen::inRange(0, 1001) * 1e-3);
    plan.columns.push_back(*rc::gen::inRange(fewest, 1001));
  }
  return plan;
}

double cost_of_plan(const CommunicationModel& model, const Plan& plan) {
  static const auto compute =
      std::make_shared<AnalyticComputeModel>(find_compute_hardware("a100-40gb"));
  return Simulator(plan.task, compute, model).combine(plan.compute_ms, plan.columns).cost_ms;
}

/// One device after the other gets more columns, computes longer, or both.
void expect_monotone(const CommunicationModel& model, Plan plan) {
  double before = cost_of_plan(model, plan);
  RC_ASSERT(std::isfinite(before));
  for (std::size_t d = 0; d < plan.columns.size(); ++d) {
    const int change = *rc::gen::inRange(0, 3);
    if (change != 0) plan.columns[d] += *rc::gen::element(1.0, 4.0, 64.0, 4096.0, 1e9);
    if (change != 1) plan.compute_ms[d] += *rc::gen::element(1e-6, 0.01, 1.0, 50.0);
    const double after = cost_of_plan(model, plan);
    RC_ASSERT(after >= before * (1.0 - kOrderRounding));
    before = after;
  }
}

struct Cluster {
  const char* name;
  std::vector<int> devices_per_host;
};

const Cluster& arbitrary_cluster() {
  static const std::vector<Cluster> all{{"a100-nvswitch", {1, 2, 8}}, {"h100-nvswitch", {1, 4, 8}},
                                        {"pcie4", {1, 2, 3, 4}},      {"ethernet-10g", {1}},
                                        {"ethernet-25g", {1}},        {"ethernet-100g", {1}}};
  return all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

RC_GTEST_PROP(MonotoneCostProperty, OfTheShippedModel, ()) {
  const Cluster& cluster = arbitrary_cluster();
  const CommunicationModel& model = shipped_communication(cluster.name);
  RC_ASSERT(!model->is_estimate());
  expect_monotone(model, arbitrary_device_columns(cluster.devices_per_host));
}

RC_GTEST_PROP(MonotoneCostProperty, OfNetworksOfAnyParameters, ()) {
  const auto cluster = *rc::gen::element<std::size_t>(0, 1);
  const auto model = std::make_shared<NeuralCommunicationModel>(
      random_communication_network(*rc::gen::inRange(0, 200)), two_clusters(), cluster);
  expect_monotone(model, arbitrary_device_columns({1, 2, 3, 4}));
}

RC_GTEST_PROP(MonotoneCostProperty, OfTheLinkSchedule, ()) {
  const Cluster& cluster = arbitrary_cluster();
  expect_monotone(std::make_shared<AnalyticCommunicationModel>(find_interconnect(cluster.name)),
                  arbitrary_device_columns(cluster.devices_per_host));
}

}  // namespace
}  // namespace neuroshard
