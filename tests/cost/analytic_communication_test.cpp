// The analytic all-to-all: its formula by hand, waiting, and symmetry.
#include "neuroshard/cost/communication/analytic_communication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "neuroshard/core/error.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_tasks::make_topology;

/// 1 GB/s in the host, 0.5 outside, latencies 0.25 and 0.5 ms.
Interconnect small_network() {
  return {.name = "small",
          .intra_host_gb_per_s = 1.0,
          .inter_host_gb_per_s = 0.5,
          .intra_host_latency_ms = 0.25,
          .inter_host_latency_ms = 0.5,
          .devices_per_host = 2,
          .source = "made up"};
}

std::vector<double> backward(const AnalyticCommunicationModel& model, const Topology& devices,
                             std::int64_t batch_size, const std::vector<double>& columns) {
  std::vector<double> ms(columns.size());
  model.backward(devices, batch_size, columns, ms);
  return ms;
}

std::vector<double> forward(const AnalyticCommunicationModel& model, const Topology& devices,
                            std::int64_t batch_size, const std::vector<double>& columns,
                            const std::vector<double>& start_ms) {
  std::vector<double> ms(columns.size());
  model.forward(devices, batch_size, columns, start_ms, ms);
  return ms;
}

TEST(AnalyticCommunication, OneDeviceCostsNothing) {
  const AnalyticCommunicationModel model(small_network());
  EXPECT_THAT(backward(model, make_topology(1, 1), 100, {64.0}), testing::ElementsAre(0.0));
  EXPECT_THAT(forward(model, make_topology(1, 1), 100, {64.0}, {0.0}), testing::ElementsAre(0.0));
}

TEST(AnalyticCommunication, InOneHostTheLargerOfSentAndReceivedCounts) {
  const AnalyticCommunicationModel model(small_network(), 0.5);
  // A column is 4 * 250,000 / 2 bytes = 0.5 MB, 1 ms at half of 1 GB/s. Both carry 3 columns.
  EXPECT_THAT(backward(model, make_topology(2, 2), 250'000, {1.0, 3.0}),
              testing::ElementsAre(3.25, 3.25));
  // 4 devices: 0.5 ms per column. Device 0 sends 3 * 4; device 1 receives 4 + 0 + 0.
  EXPECT_THAT(backward(model, make_topology(4, 4), 250'000, {4.0, 0.0, 0.0, 0.0}),
              testing::ElementsAre(6.25, 2.25, 2.25, 2.25));
}

TEST(AnalyticCommunication, LevelsOverlapAndTheSlowerCounts) {
  const AnalyticCommunicationModel model(small_network(), 0.5);
  // 2 hosts of 2; a column is 0.5 ms in the host, 1 ms outside.
  // Device 0: in the host max(4, 2) * 0.5 + 0.25, outside max(2 * 4, 1) * 1 + 0.5.
  // Device 1: 2.25, and max(2 * 2, 1) + 0.5. Devices 2, 3: max(2 * (1 or 0), 6) + 0.5 outside.
  EXPECT_THAT(backward(model, make_topology(4, 2), 250'000, {4.0, 2.0, 1.0, 0.0}),
              testing::ElementsAre(8.5, 4.5, 6.5, 6.5));
  // One device per host: no level in the host.
  EXPECT_THAT(backward(model, make_topology(2, 1), 250'000, {0.0, 0.0}),
              testing::ElementsAre(0.5, 0.5));
}

TEST(AnalyticCommunication, ForwardWaitsForTheLast) {
  const AnalyticCommunicationModel model(small_network(), 0.5);
  EXPECT_THAT(
      forward(model, make_topology(4, 4), 250'000, {4.0, 0.0, 0.0, 0.0}, {0.0, 3.0, 1.0, 0.0}),
      testing::ElementsAre(6.25 + 3.0, 2.25, 2.25 + 2.0, 2.25 + 3.0));
}

TEST(AnalyticCommunication, TheBatchIsDividedAsARealNumber) {
  const AnalyticCommunicationModel model(small_network(), 1.0);
  const double ms = backward(model, make_topology(2, 2), 3, {2.0, 2.0})[0];
  EXPECT_DOUBLE_EQ(ms, 0.25 + 2.0 * 4.0 * 1.5 / 1e6);
}

TEST(AnalyticCommunication, NamesItselfAndSaysWhereItEnds) {
  const AnalyticCommunicationModel model(small_network());
  EXPECT_EQ(model.name(), "analytic-small");
  EXPECT_TRUE(model.is_estimate());
  Task task;
  task.topology = make_topology(4, 2);
  EXPECT_TRUE(model.outside_range(task).empty());
  task.topology = make_topology(4, 4);
  EXPECT_THAT(model.outside_range(task),
              testing::ElementsAre(
                  "topology.local_world_size: small describes hosts of at most 2 devices, got 4"));
}

TEST(AnalyticCommunication, AnUnknownNetworkIsRefusedWithTheKnownOnes) {
  try {
    (void)find_interconnect("token-ring");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "interconnect: expected one of a100-nvswitch, h100-nvswitch, pcie4, ethernet-10g, "
                 "ethernet-25g, ethernet-50g, ethernet-100g, got \"token-ring\"");
  }
}

TEST(AnalyticCommunication, RefusesImpossibleNetworks) {
  Interconnect network = small_network();
  network.inter_host_latency_ms = -1.0;
  try {
    const AnalyticCommunicationModel model(network);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "interconnect small.inter_host_latency_ms: expected a time of at least 0, got -1");
  }
  EXPECT_THROW(AnalyticCommunicationModel(small_network(), 0.0), InputError);
}

TEST(AnalyticCommunication, PresetsAreUsableAndNamedOnce) {
  std::set<std::string_view> names;
  for (const Interconnect& interconnect : interconnects()) {
    EXPECT_NO_THROW(AnalyticCommunicationModel{interconnect});
    EXPECT_FALSE(interconnect.source.empty());
    EXPECT_TRUE(names.insert(interconnect.name).second);
    EXPECT_EQ(&find_interconnect(interconnect.name), &interconnect);
  }
}

/// What a device sends and receives, peer by peer, as the header's formula reads.
double transfer_by_definition(const Interconnect& network, double share, const Topology& devices,
                              double batch_size, const std::vector<double>& columns, int d) {
  const double u = 4.0 * batch_size / devices.world_size;
  double sent[2] = {0.0, 0.0}, received[2] = {0.0, 0.0};
  bool peers[2] = {false, false};
  for (int j = 0; j < devices.world_size; ++j) {
    if (j == d) continue;
    const int level = j / devices.local_world_size == d / devices.local_world_size ? 0 : 1;
    peers[level] = true;
    sent[level] += u * columns[d];
    received[level] += u * columns[j];
  }
  const double bandwidth[2] = {network.intra_host_gb_per_s, network.inter_host_gb_per_s};
  const double latency[2] = {network.intra_host_latency_ms, network.inter_host_latency_ms};
  double ms = 0.0;
  for (int level = 0; level < 2; ++level) {
    if (!peers[level]) continue;
    ms = std::max(ms, std::max(sent[level], received[level]) / (bandwidth[level] * share * 1e6) +
                          latency[level]);
  }
  return ms;
}

RC_GTEST_PROP(AnalyticCommunicationProperty, AgreesWithTheSumOverPeers, ()) {
  const int per_host = *rc::gen::inRange(1, 5);
  const Topology devices = make_topology(per_host * *rc::gen::inRange(1, 5), per_host);
  const auto columns = *rc::gen::container<std::vector<double>>(
      devices.world_size, rc::gen::map(rc::gen::inRange(0, 1000), [](int c) { return 4.0 * c; }));
  const auto start_ms = *rc::gen::container<std::vector<double>>(
      devices.world_size, rc::gen::map(rc::gen::inRange(0, 100), [](int c) { return 0.25 * c; }));
  const auto batch_size = *rc::gen::inRange<std::int64_t>(1, 100'000);
  const Interconnect network = *rc::gen::elementOf(
      std::vector<Interconnect>(interconnects().begin(), interconnects().end()));
  const AnalyticCommunicationModel model(network);

  const std::vector<double> back = backward(model, devices, batch_size, columns);
  const std::vector<double> fore = forward(model, devices, batch_size, columns, start_ms);
  const double last = *std::max_element(start_ms.begin(), start_ms.end());
  for (int d = 0; d < devices.world_size; ++d) {
    const double expected = transfer_by_definition(network, kEffectiveNetworkShare, devices,
                                                   static_cast<double>(batch_size), columns, d);
    RC_ASSERT(std::abs(back[d] - expected) <= 1e-9 * (1.0 + expected));
    RC_ASSERT(std::abs(start_ms[d] + fore[d] - (last + back[d])) <= 1e-9 * (1.0 + expected + last));
  }
}

}  // namespace
}  // namespace neuroshard
