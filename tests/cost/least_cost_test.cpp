// The bound that spares a search the price of a plan: never above the cost, never below what each
// device's own messages take.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
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

/// What rounding in the last digits of a cost may amount to, as the search has it.
constexpr double kBoundRounding = 1e-9;

/// The input of the bound: a plan before its all-to-alls are priced.
struct BoundCase {
  Task task;
  std::vector<double> compute_ms;
  std::vector<double> columns;
};

/// Devices that wait for each other or hardly do, of many columns, few, or none.
BoundCase arbitrary_bound_case(const Topology& topology) {
  BoundCase drawn;
  drawn.task.batch_size = *rc::gen::element<std::int64_t>(1, 512, 4096, 65'536, kMaxBatchSize);
  drawn.task.tables = {make_table("t", 10, 4)};
  drawn.task.topology = topology;
  const double longest_ms = *rc::gen::element(0.0, 0.01, 1.0, 100.0);
  const int most_columns = *rc::gen::element(0, 8, 300, 5000);
  const bool some_empty = *rc::gen::arbitrary<bool>();
  for (int d = 0; d < topology.world_size; ++d) {
    drawn.compute_ms.push_back(longest_ms * *rc::gen::inRange(0, 1001) * 1e-3);
    const bool empty = some_empty && *rc::gen::inRange(0, 3) == 0;
    drawn.columns.push_back(empty ? 0.0 : *rc::gen::inRange(0, most_columns + 1));
  }
  return drawn;
}

double least_cost(const CommunicationModel& model, const BoundCase& c) {
  return model->least_cost_ms(c.task.topology, c.task.batch_size, c.compute_ms, c.columns);
}

double cost_of_case(const CommunicationModel& model, const BoundCase& c) {
  static const auto compute =
      std::make_shared<AnalyticComputeModel>(find_compute_hardware("a100-40gb"));
  return Simulator(c.task, compute, model).combine(c.compute_ms, c.columns).cost_ms;
}

void expect_bounds(const CommunicationModel& model, const BoundCase& c) {
  const double before = cost_of_case(model, c);
  const double least = least_cost(model, c);
  RC_ASSERT(least * (1.0 - kBoundRounding) <= before);
  double floor = 0.0;
  for (std::size_t d = 0; d < c.columns.size(); ++d) {
    floor = std::max(
        floor, c.compute_ms[d] + model->floor_ms(c.task.topology, c.task.batch_size, c.columns[d]));
  }
  RC_ASSERT(least >= floor * (1.0 - kBoundRounding));
  RC_ASSERT(cost_of_case(model, c) == before);  // asking for the bound leaves nothing behind
  if (c.columns.size() == 1) RC_ASSERT(least == before);
}

/// One device, one host, several, more than any model knows.
Topology arbitrary_topology(const std::vector<int>& devices_per_host) {
  const int per_host = *rc::gen::elementOf(devices_per_host);
  const int hosts = *rc::gen::element(1, 2, 3, 4, 7, 40);
  return make_topology(hosts * per_host, per_host);
}

struct ShippedCluster {
  const char* name;  ///< of a shipped model
  std::vector<int> devices_per_host;
};

/// Those of pcie4 share a card in fours.
const std::vector<ShippedCluster>& clusters() {
  static const std::vector<ShippedCluster> all{{"a100-nvswitch", {1, 2, 8, 10}},
                                               {"h100-nvswitch", {1, 4, 8}},
                                               {"pcie4", {1, 2, 3, 4, 6, 8}},
                                               {"ethernet-10g", {1, 2}},
                                               {"ethernet-100g", {1, 4}}};
  return all;
}

RC_GTEST_PROP(LeastCostProperty, ShippedModelsKeepTheirBounds, ()) {
  const ShippedCluster cluster = *rc::gen::elementOf(clusters());
  const CommunicationModel& model = shipped_communication(cluster.name);
  RC_ASSERT(!model->is_estimate());
  expect_bounds(model, arbitrary_bound_case(arbitrary_topology(cluster.devices_per_host)));
}

RC_GTEST_PROP(LeastCostProperty, AnalyticModelsKeepTheirBounds, ()) {
  const ShippedCluster cluster = *rc::gen::elementOf(clusters());
  const auto model = std::make_shared<AnalyticCommunicationModel>(find_interconnect(cluster.name));
  expect_bounds(model, arbitrary_bound_case(arbitrary_topology(cluster.devices_per_host)));
}

RC_GTEST_PROP(LeastCostProperty, NetworksOfAnyParametersKeepTheirBounds, ()) {
  const auto cluster = *rc::gen::element<std::size_t>(0, 1);
  const auto model = std::make_shared<NeuralCommunicationModel>(
      random_communication_network(*rc::gen::inRange(0, 50)), two_clusters(), cluster);
  expect_bounds(model, arbitrary_bound_case(arbitrary_topology({1, 2, 3, 4, 8})));
}

RC_GTEST_PROP(LeastCostProperty, WhereTheLinksAloneDecideTheBoundIsTheCost, ()) {
  const CommunicationModel& model = shipped_communication("ethernet-10g");
  const int per_host = *rc::gen::inRange(1, 4);
  const BoundCase c = arbitrary_bound_case(make_topology(40 * per_host, per_host));
  RC_ASSERT(!model->outside_range(c.task).empty());
  RC_ASSERT(least_cost(model, c) >= cost_of_case(model, c) * (1.0 - kBoundRounding));
  // And the cost is the analytic model's, as that is the same links.
  const auto analytic =
      std::make_shared<AnalyticCommunicationModel>(find_interconnect("ethernet-10g"));
  RC_ASSERT(std::abs(cost_of_case(analytic, c) - cost_of_case(model, c)) <=
            kBoundRounding * cost_of_case(model, c));
}

}  // namespace
}  // namespace neuroshard
