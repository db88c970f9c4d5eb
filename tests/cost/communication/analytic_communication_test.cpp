// The analytic all-to-all: schedules by hand, the definition message by message, and its floor.
#include "neuroshard/cost/communication/analytic_communication.h"
#include "neuroshard/core/interconnect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/model_catalog.h"
#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing::ElementsAre;
using testing_tasks::make_topology;

/// Hosts of up to 4 devices: 1 GB/s in the host; cards of 0.5 GB/s, each of one device. Latencies
/// of 0.25 and 0.5 ms. A column of a device's messages to one peer is 1 MB / W for `kBatch`.
constexpr std::int64_t kBatch = 250'000;
Interconnect small_interconnect(int devices_per_card = 1) {
  return {.name = "small",
          .devices_per_host = 4,
          .intra_host_gb_per_s = 2.0,
          .intra_host_latency_ms = 0.25,
          .intra_host_share = 0.5,
          .devices_per_card = devices_per_card,
          .card_gb_per_s = 2.0,
          .card_share = 0.25,
          .inter_host_latency_ms = 0.5,
          .source = "made up"};
}

std::vector<double> backward(const CommunicationCostModel& model, const Topology& devices,
                             std::int64_t batch_size, const std::vector<double>& columns) {
  std::vector<double> ms(columns.size(), -1.0);
  model.backward(devices, batch_size, columns, ms);
  return ms;
}

std::vector<double> forward(const CommunicationCostModel& model, const Topology& devices,
                            std::int64_t batch_size, const std::vector<double>& columns,
                            const std::vector<double>& start_ms) {
  std::vector<double> ms(columns.size(), -1.0);
  model.forward(devices, batch_size, columns, start_ms, ms);
  return ms;
}

TEST(AnalyticCommunication, OneDeviceCostsNothing) {
  const AnalyticCommunicationModel model(small_interconnect());
  EXPECT_THAT(backward(model, make_topology(1, 1), 100, {64.0}), ElementsAre(0.0));
  EXPECT_THAT(forward(model, make_topology(1, 1), 100, {64.0}, {0.0}), ElementsAre(0.0));
  EXPECT_EQ(model.floor_ms(make_topology(1, 1), 100, 64.0), 0.0);
}

TEST(AnalyticCommunication, InOneHostTheLargestSenderHoldsUpAll) {
  const AnalyticCommunicationModel model(small_interconnect());
  // 0.5 ms per column and peer; device 1 sends 3 columns.
  EXPECT_THAT(backward(model, make_topology(2, 2), kBatch, {1.0, 3.0}), ElementsAre(1.75, 1.75));
  // 4 devices: 0.25 ms. Device 0 sends 4 columns to 3 peers, whose messages end together.
  EXPECT_THAT(backward(model, make_topology(4, 4), kBatch, {4.0, 0.0, 0.0, 0.0}),
              ElementsAre(3.25, 3.25, 3.25, 3.25));
}

TEST(AnalyticCommunication, WhoIsLateHoldsUpAllAndHasStillToReceive) {
  const AnalyticCommunicationModel model(small_interconnect());
  // Device 3 comes when all else is sent, and has 6 columns of 0.25 ms to receive.
  EXPECT_THAT(
      forward(model, make_topology(4, 4), kBatch, {2.0, 2.0, 2.0, 0.0}, {0.0, 1.0, 0.0, 10.0}),
      ElementsAre(10.25, 9.25, 10.25, 1.75));
}

TEST(AnalyticCommunication, BetweenHostsSendingAndReceivingCount) {
  const AnalyticCommunicationModel model(small_interconnect());
  // One device per host: 1 ms per column and peer with two hosts; a latency even without columns.
  EXPECT_THAT(backward(model, make_topology(2, 1), kBatch, {1.0, 3.0}), ElementsAre(3.5, 3.5));
  EXPECT_THAT(backward(model, make_topology(2, 1), kBatch, {0.0, 0.0}), ElementsAre(0.5, 0.5));
  // The same while device 1 is late: it receives at once and sends from 2 ms on.
  EXPECT_THAT(forward(model, make_topology(2, 1), kBatch, {1.0, 3.0}, {0.0, 2.0}),
              ElementsAre(5.5, 3.5));
}

TEST(AnalyticCommunication, DevicesOfACardShareIt) {
  const AnalyticCommunicationModel model(small_interconnect(2));
  // Two hosts of two; alone, a column takes 0.5 ms to each of the two peers outside. Devices 0 and
  // 1 have 4 and 2 ms to send: both at half the rate until device 1 is through at 4 ms, device 0 at
  // 6. Host 1 receives 3 ms for each of its devices, both through at 6.
  EXPECT_THAT(backward(model, make_topology(4, 2), kBatch, {4.0, 2.0, 1.0, 0.0}),
              ElementsAre(6.5, 4.5, 6.5, 6.5));
  // Device 1 comes at 2 ms, when 2 ms of device 0 are left: both are through at 6.
  EXPECT_THAT(
      forward(model, make_topology(4, 2), kBatch, {4.0, 2.0, 0.0, 0.0}, {0.0, 2.0, 0.0, 0.0}),
      ElementsAre(6.5, 4.5, 6.5, 6.5));
  // With a card each, device 0 is through at 4.
  const AnalyticCommunicationModel apart(small_interconnect(1));
  EXPECT_THAT(backward(apart, make_topology(4, 2), kBatch, {4.0, 2.0, 1.0, 0.0}),
              ElementsAre(4.5, 2.5, 4.5, 4.5));
}

TEST(AnalyticCommunication, BothLevelsRunAtOnceAndTheSlowerCounts) {
  Interconnect slow_hosts = small_interconnect();
  slow_hosts.intra_host_gb_per_s = 0.2;
  const AnalyticCommunicationModel model(slow_hosts);
  // In the host 2.5 ms per column, outside 1 ms for both peers.
  EXPECT_THAT(backward(model, make_topology(4, 2), kBatch, {4.0, 2.0, 1.0, 0.0}),
              ElementsAre(10.25, 10.25, 4.5, 4.5));
}

TEST(AnalyticCommunication, APresetByHand) {
  // 8 devices in 2 hosts of pcie4, 100 columns each: four of them share a card of 11.75 GB/s.
  const AnalyticCommunicationModel model(find_interconnect("pcie4"));
  const double megabytes = 4.0 * 65'536 / 8 * 100 * 4 * 4 / 1e6;
  for (const double ms : backward(model, make_topology(8, 4), 65'536, std::vector(8, 100.0))) {
    EXPECT_NEAR(ms, megabytes / 11.75 + 0.03, 1e-9);
  }
  // In one host each has a link of 26.775 GB/s of its own.
  for (const double ms : backward(model, make_topology(4, 4), 65'536, std::vector(4, 100.0))) {
    EXPECT_NEAR(ms, 4.0 * 65'536 / 4 * 100 * 3 / 1e6 / 26.775 + 0.006, 1e-9);
  }
}

TEST(AnalyticCommunication, TheBatchIsDividedAsARealNumber) {
  const AnalyticCommunicationModel model(small_interconnect());
  const double ms = backward(model, make_topology(2, 2), 3, {2.0, 2.0})[0];
  EXPECT_DOUBLE_EQ(ms, 0.25 + 2.0 * 4.0 * 1.5 / 1e6);
}

TEST(AnalyticCommunication, NamesItselfAndSaysWhereItEnds) {
  const AnalyticCommunicationModel model(small_interconnect());
  EXPECT_EQ(model.name(), "analytic-small");
  EXPECT_TRUE(model.is_estimate());
  EXPECT_FALSE(model.is_simulated());
  Task task;
  task.topology = make_topology(8, 4);
  EXPECT_TRUE(model.outside_range(task).empty());
  task.topology = make_topology(8, 8);
  EXPECT_THAT(model.outside_range(task),
              ElementsAre("topology.local_world_size: small describes hosts of at most 4 devices, "
                          "got 8"));
}

TEST(AnalyticCommunication, RefusesAnImpossibleInterconnect) {
  Interconnect interconnect = small_interconnect();
  interconnect.card_share = 0.0;
  try {
    const AnalyticCommunicationModel model(interconnect);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "interconnect small.card_share: expected a share above 0, at most 1, got 0");
  }
}

TEST(AnalyticCommunication, TheCatalogsAreThePresets) {
  const Topology topology = make_topology(2, 1);
  for (const Interconnect& preset : interconnects()) {
    const auto model = load_cost_models({"analytic-" + preset.name}, topology).communication;
    const auto* analytic = dynamic_cast<const AnalyticCommunicationModel*>(model.get());
    ASSERT_NE(analytic, nullptr) << preset.name;
    EXPECT_TRUE(analytic->interconnect().has_links_of(preset));
    EXPECT_EQ(analytic->interconnect().devices_per_host, preset.devices_per_host);
  }
}

struct LinkCase {
  Topology topology;
  std::int64_t batch_size = 1;
  std::vector<double> columns;
  std::vector<double> start_ms;
};

/// Hosts of any size, devices that start together, a little apart, or long after one another.
LinkCase arbitrary_link_case() {
  LinkCase drawn;
  const int per_host = *rc::gen::inRange(1, 7);
  drawn.topology = make_topology(per_host * *rc::gen::inRange(1, 6), per_host);
  drawn.batch_size = *rc::gen::inRange<std::int64_t>(1, 100'000);
  const double longest_ms = *rc::gen::element(0.0, 0.25, 64.0);
  for (int d = 0; d < drawn.topology.world_size; ++d) {
    drawn.columns.push_back(4.0 * *rc::gen::inRange(0, 500));
    drawn.start_ms.push_back(longest_ms * *rc::gen::inRange(0, 17) / 16.0);
  }
  const double earliest = *std::min_element(drawn.start_ms.begin(), drawn.start_ms.end());
  for (double& start : drawn.start_ms) start -= earliest;
  return drawn;
}

/// A preset, or anything else.
Interconnect arbitrary_interconnect() {
  if (*rc::gen::arbitrary<bool>()) {
    return *rc::gen::elementOf(
        std::vector<Interconnect>(interconnects().begin(), interconnects().end()));
  }
  return {.name = "any",
          .devices_per_host = 8,
          .intra_host_gb_per_s = 0.5 * *rc::gen::inRange(1, 200),
          .intra_host_latency_ms = 0.01 * *rc::gen::inRange(0, 10),
          .intra_host_share = *rc::gen::element(0.5, 0.82, 1.0),
          .devices_per_card = *rc::gen::inRange(1, 7),
          .card_gb_per_s = 0.5 * *rc::gen::inRange(1, 100),
          .card_share = *rc::gen::element(0.25, 0.94, 1.0),
          .inter_host_latency_ms = 0.01 * *rc::gen::inRange(0, 10),
          .source = "drawn"};
}

/// When the flows [first, last) are through a card that serves those under way evenly: flow d
/// begins at start[d] and alone takes work[d]. The rate of each changes only when a flow begins or
/// ends, so time goes from one such moment to the next.
void share_by_definition(int first, int last, const std::vector<double>& start,
                         const std::vector<double>& work, std::vector<double>& end) {
  constexpr double kThrough = 1e-12;
  std::vector<double> left(work);
  double now = 0.0;
  for (int d = first; d < last; ++d) end[d] = start[d];
  while (true) {
    double next = std::numeric_limits<double>::infinity();
    int under_way = 0;
    const auto is_under_way = [&](int d) { return start[d] <= now && left[d] > kThrough; };
    for (int d = first; d < last; ++d) under_way += is_under_way(d) ? 1 : 0;
    for (int d = first; d < last; ++d) {
      if (is_under_way(d)) next = std::min(next, now + left[d] * under_way);
      if (start[d] > now) next = std::min(next, start[d]);
    }
    if (std::isinf(next)) return;
    for (int d = first; d < last; ++d) {
      if (!is_under_way(d)) continue;
      left[d] -= (next - now) / under_way;
      end[d] = next;
    }
    now = next;
  }
}

/// LinkSchedule's comment, peer by peer.
std::vector<double> ends_by_definition(const Interconnect& links, const LinkCase& c,
                                       const std::vector<double>& start) {
  const int world_size = c.topology.world_size;
  const int per_host = c.topology.local_world_size;
  const auto count = static_cast<std::size_t>(world_size);
  const double column_mb = 4.0 * static_cast<double>(c.batch_size) / world_size / 1e6;
  const double in_host = column_mb / (links.intra_host_gb_per_s * links.intra_host_share);
  const double on_card = column_mb / (links.card_gb_per_s * links.card_share);
  std::vector<double> host_send(count), host_receive(count), card_send(count), card_receive(count);
  const auto is_neighbour = [&](int d, int j) { return d / per_host == j / per_host; };
  for (int d = 0; d < world_size; ++d) {
    for (int j = 0; j < world_size; ++j) {
      if (j == d) continue;
      (is_neighbour(d, j) ? host_send : card_send)[d] +=
          c.columns[d] * (is_neighbour(d, j) ? in_host : on_card);
      (is_neighbour(d, j) ? host_receive : card_receive)[d] +=
          c.columns[j] * (is_neighbour(d, j) ? in_host : on_card);
    }
  }
  std::vector<double> sent(count), received(count);
  for (int first = 0; first < world_size;) {
    const int end_of_host = (first / per_host + 1) * per_host;
    const int last = std::min(first + links.devices_per_card, end_of_host);
    share_by_definition(first, last, start, card_send, sent);
    share_by_definition(first, last, start, card_receive, received);
    first = last;
  }
  std::vector<double> ends(start);
  for (int d = 0; d < world_size; ++d) {
    for (int j = 0; j < world_size; ++j) {
      if (per_host > 1 && is_neighbour(d, j)) {
        ends[d] = std::max({ends[d], start[j] + host_send[j] + links.intra_host_latency_ms,
                            start[d] + host_receive[d] + links.intra_host_latency_ms});
      } else if (!is_neighbour(d, j)) {
        ends[d] = std::max(
            {ends[d], std::max({sent[d], received[d], sent[j]}) + links.inter_host_latency_ms});
      }
    }
  }
  return ends;
}

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * (1.0 + std::abs(b)); }

RC_GTEST_PROP(AnalyticCommunicationProperty, AgreesWithTheDefinitionPeerByPeer, ()) {
  const Interconnect interconnect = arbitrary_interconnect();
  const AnalyticCommunicationModel model(interconnect);
  const LinkCase c = arbitrary_link_case();
  const std::vector<double> together(c.columns.size(), 0.0);
  const auto back = backward(model, c.topology, c.batch_size, c.columns);
  const auto fore = forward(model, c.topology, c.batch_size, c.columns, c.start_ms);
  const auto back_ends = ends_by_definition(interconnect, c, together);
  const auto fore_ends = ends_by_definition(interconnect, c, c.start_ms);
  const double last = *std::max_element(c.start_ms.begin(), c.start_ms.end());
  for (std::size_t d = 0; d < c.columns.size(); ++d) {
    RC_ASSERT(is_near(back[d], back_ends[d]));
    RC_ASSERT(is_near(c.start_ms[d] + fore[d], fore_ends[d]));
    if (c.columns.size() > 1) RC_ASSERT(c.start_ms[d] + fore[d] >= last * (1.0 - 1e-12));
  }
}

/// Lower bounds of plans and the improvement's early refusals rely on this.
RC_GTEST_PROP(AnalyticCommunicationProperty, TheFloorIsNeverAboveTheCost, ()) {
  const AnalyticCommunicationModel model(arbitrary_interconnect());
  const LinkCase c = arbitrary_link_case();
  const auto back = backward(model, c.topology, c.batch_size, c.columns);
  const auto fore = forward(model, c.topology, c.batch_size, c.columns, c.start_ms);
  for (std::size_t d = 0; d < c.columns.size(); ++d) {
    const double floor = model.floor_ms(c.topology, c.batch_size, c.columns[d]);
    RC_ASSERT(floor <= (back[d] + fore[d]) * (1.0 + 1e-12));
  }
}

RC_GTEST_PROP(AnalyticCommunicationProperty, TheFloorIsConvexAndNeverFalls, ()) {
  const AnalyticCommunicationModel model(arbitrary_interconnect());
  const LinkCase c = arbitrary_link_case();
  const auto floor = [&](double columns) {
    return model.floor_ms(c.topology, c.batch_size, columns);
  };
  const double few = *rc::gen::inRange(0, 5000);
  const double many = few + *rc::gen::inRange(0, 5000);
  RC_ASSERT(floor(0.0) >= 0.0);
  RC_ASSERT(floor(few) <= floor(many));
  for (const double share : {0.25, 0.5, 0.75}) {
    const double chord = (1.0 - share) * floor(few) + share * floor(many);
    RC_ASSERT(floor((1.0 - share) * few + share * many) <= chord * (1.0 + 1e-12));
  }
}

/// No floor could be higher: it is the cost of a device that alone has columns.
RC_GTEST_PROP(AnalyticCommunicationProperty, TheFloorIsTheCostOfTheOnlySender, ()) {
  const AnalyticCommunicationModel model(arbitrary_interconnect());
  LinkCase c = arbitrary_link_case();
  const auto sender = *rc::gen::inRange<std::size_t>(0, c.columns.size());
  const double columns = c.columns[sender];
  c.columns.assign(c.columns.size(), 0.0);
  c.columns[sender] = columns;
  const double cost = 2.0 * backward(model, c.topology, c.batch_size, c.columns)[sender];
  RC_ASSERT(is_near(model.floor_ms(c.topology, c.batch_size, columns), cost));
}

/// Threads share models, and a thread that asks for others in between gets the same answers.
TEST(AnalyticCommunication, ThreadsAndModelsDoNotDisturbEachOther) {
  const AnalyticCommunicationModel one(find_interconnect("pcie4"));
  const AnalyticCommunicationModel other(find_interconnect("a100-nvswitch"));
  const std::vector<double> columns{64.0, 32.0, 128.0, 4.0, 0.0, 256.0, 8.0, 16.0};
  const std::vector<double> start_ms{0.0, 1.0, 0.5, 0.0, 2.0, 0.25, 0.0, 3.0};
  const Topology wide = make_topology(8, 4);
  const Topology narrow = make_topology(8, 2);
  const auto expected_one = forward(one, wide, 4096, columns, start_ms);
  const auto expected_other = forward(other, narrow, 8192, columns, start_ms);
  EXPECT_NE(expected_one, expected_other);
  std::vector<std::thread> threads;
  std::vector<int> differences(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const bool first = (i + t) % 2 == 0;
        const auto ms = first ? forward(one, wide, 4096, columns, start_ms)
                              : forward(other, narrow, 8192, columns, start_ms);
        differences[t] += ms == (first ? expected_one : expected_other) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(differences, testing::Each(0));
}

}  // namespace
}  // namespace neuroshard
