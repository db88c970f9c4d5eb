// The rendezvous schedule against its definition and against hand-made all-to-alls.
#include "neuroshard/cost/communication/rendezvous_schedule.h"
#include "neuroshard/core/interconnect.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/cost/arbitrary_task.h"

namespace neuroshard {
namespace {

using testing_tasks::make_topology;

/// 1 GB/s between hosts: with a batch of W * 250,000, a column takes 1 ms for each peer.
Interconnect links(int devices_per_card) {
  return {.name = "test",
          .devices_per_host = 8,
          .intra_host_gb_per_s = 8.0,
          .intra_host_latency_ms = 0.25,
          .devices_per_card = devices_per_card,
          .card_gb_per_s = 1.0,
          .inter_host_latency_ms = 0.5};
}

AllToAllEnds forward_ends(int world_size, const std::vector<double>& columns,
                          const std::vector<double>& start_ms) {
  RendezvousSchedule schedule(links(1), make_topology(world_size, 1), world_size * 250'000);
  AllToAllEnds ends;
  schedule.forward(columns, start_ms, ends);
  return ends;
}

TEST(RendezvousSchedule, TwoDevicesCannotBeginBeforeBothAreThere) {
  const AllToAllEnds ends = forward_ends(2, {4.0, 2.0}, {0.0, 10.0});
  EXPECT_EQ(ends.last_start_ms, 10.0);
  EXPECT_DOUBLE_EQ(ends.rests_ms[0], 4.5);
  EXPECT_DOUBLE_EQ(ends.rests_ms[1], 9.0);
  EXPECT_DOUBLE_EQ(ends.rests_ms[2], 36.0);
  EXPECT_DOUBLE_EQ(ends.rests_ms[3], 4.5);  // nobody waits for more than that anyway
}

TEST(RendezvousSchedule, AnEarlySenderKeepsWhatTheLateOnesAskFor) {
  // Device 0 sends 3 ms to each of three: to device 1 at once, to the others when they enter.
  const AllToAllEnds ends = forward_ends(4, {3.0, 1.0, 1.0, 0.5}, {0.0, 0.0, 10.0, 11.0});
  // At 10 two messages of 3 ms are left, of which none is through at 11.
  EXPECT_DOUBLE_EQ(ends.rests_ms[0], 16.5 - 11.0);
  EXPECT_DOUBLE_EQ(ends.rests_ms[3], 9.5);  // as if all its messages had waited
  EXPECT_EQ(ends.shares[0], 1.0);
  // Message by message: that to device 2 is alone for 1 ms, then shares the link, and ends at 15.
  EXPECT_DOUBLE_EQ(ends.shares[2], (15.5 - 11.0) / (16.5 - 11.0));
  EXPECT_DOUBLE_EQ(ends.shares[3], 1.0);
}

TEST(RendezvousSchedule, WithoutLagsItIsTheLinkSchedule) {
  const std::vector<double> columns{3.0, 1.0, 2.0, 7.0, 0.0, 5.0, 5.0, 4.0};
  const std::vector<double> together(8, 2.0);
  for (const int on_card : {1, 2, 4}) {
    for (const int per_host : {1, 2, 4, 8}) {
      RendezvousSchedule schedule(links(on_card), make_topology(8, per_host), 2'000'000);
      std::vector<double> expected(8);
      schedule.links().ends(columns, together, expected);
      AllToAllEnds ends;
      schedule.forward(columns, together, ends);
      for (std::size_t d = 0; d < 8; ++d) {
        EXPECT_NEAR(2.0 + ends.shares[d] * ends.rests_ms[0], expected[d], 1e-12)
            << on_card << " on a card, " << per_host << " in a host, device " << d;
      }
      EXPECT_NEAR(ends.rests_ms[3], ends.rests_ms[0], 1e-12);
      EXPECT_NEAR(ends.rests_ms[2], 8.0 * ends.rests_ms[0], 1e-12);
      AllToAllEnds backward;
      schedule.backward(columns, backward);
      for (std::size_t d = 0; d < 8; ++d) {
        EXPECT_NEAR(backward.shares[d] * backward.rests_ms[0], expected[d] - 2.0, 1e-12);
      }
    }
  }
}

TEST(RendezvousSchedule, WhatIsNoNumberIsNoResult) {
  const double infinity = std::numeric_limits<double>::infinity();
  const AllToAllEnds ends = forward_ends(3, {1.0, 1.0, 1.0}, {0.0, infinity, 0.0});
  EXPECT_TRUE(std::isnan(ends.last_start_ms));
  EXPECT_TRUE(std::isnan(ends.rests_ms[0]));
  EXPECT_TRUE(std::isnan(ends.shares[2]));
}

struct ScheduleCase {
  Interconnect interconnect;
  Topology topology;
  std::vector<double> columns;
  std::vector<double> start_ms;
};

ScheduleCase arbitrary_schedule_case() {
  const int per_host = *rc::gen::element(1, 2, 3, 4);
  const int hosts = *rc::gen::inRange(per_host == 1 ? 2 : 1, 5);
  ScheduleCase c;
  c.interconnect = links(*rc::gen::element(1, 2, 3));
  c.topology = make_topology(hosts * per_host, per_host);
  const int longest = *rc::gen::element(0, 3, 100);
  for (int d = 0; d < hosts * per_host; ++d) {
    c.columns.push_back(*rc::gen::inRange(0, 9));
    c.start_ms.push_back(*rc::gen::inRange(0, longest + 1));
  }
  return c;
}

/// The definition: every link, both directions, every time at which a device enters.
double last_end(const ScheduleCase& c, double slowdown) {
  const int world_size = c.topology.world_size;
  const int per_host = c.topology.local_world_size;
  const auto host = [&](int d) { return d / per_host; };
  const auto card = [&](int d) {
    return host(d) * per_host + d % per_host / c.interconnect.devices_per_card;
  };
  double last = *std::max_element(c.start_ms.begin(), c.start_ms.end());
  for (const bool in_host : {true, false}) {
    const double ms = in_host ? 1.0 / 8.0 : 1.0;
    const double latency =
        in_host ? c.interconnect.intra_host_latency_ms : c.interconnect.inter_host_latency_ms;
    for (int owner = 0; owner < world_size; ++owner) {
      for (const double t : c.start_ms) {
        double sent = 0.0;
        double received = 0.0;
        bool any = false;
        for (int d = 0; d < world_size; ++d) {
          if (in_host ? d != owner : card(d) != card(owner)) continue;
          for (int e = 0; e < world_size; ++e) {
            if (e == d || (host(e) == host(d)) != in_host) continue;
            if (std::max(c.start_ms[d], c.start_ms[e]) < t) continue;
            any = true;
            sent += c.columns[d] * ms;
            received += c.columns[e] * ms;
          }
        }
        if (any) last = std::max(last, t + slowdown * (std::max(sent, received) + latency));
      }
    }
  }
  return last;
}

RC_GTEST_PROP(RendezvousScheduleProperty, LastEndsAreTheBusiestLinks, ()) {
  const ScheduleCase c = arbitrary_schedule_case();
  RendezvousSchedule schedule(c.interconnect, c.topology, c.topology.world_size * 250'000);
  AllToAllEnds ends;
  schedule.forward(c.columns, c.start_ms, ends);
  for (std::size_t k = 0; k < kSlowdowns.size(); ++k) {
    const double expected = last_end(c, kSlowdowns[k]);
    RC_ASSERT(std::abs(ends.last_start_ms + ends.rests_ms[k] - expected) <= 1e-9 * expected);
  }
  ScheduleCase together = c;
  std::fill(together.start_ms.begin(), together.start_ms.end(), 0.0);
  RC_ASSERT(std::abs(ends.rests_ms.back() - last_end(together, 1.0)) <=
            1e-9 * ends.rests_ms.back());
}

RC_GTEST_PROP(RendezvousScheduleProperty, LiesBetweenEarlySendersAndNoneAtAll, ()) {
  const ScheduleCase c = arbitrary_schedule_case();
  RendezvousSchedule schedule(c.interconnect, c.topology, c.topology.world_size * 250'000);
  std::vector<double> link_ends(c.columns.size());
  schedule.links().ends(c.columns, c.start_ms, link_ends);
  AllToAllEnds ends;
  schedule.forward(c.columns, c.start_ms, ends);
  const double early = *std::max_element(link_ends.begin(), link_ends.end());
  RC_ASSERT(ends.last_start_ms + ends.rests_ms[0] >= early * (1.0 - 1e-12));
  RC_ASSERT(ends.rests_ms[0] <= ends.rests_ms.back() * (1.0 + 1e-12));
  RC_ASSERT(*std::max_element(ends.shares.begin(), ends.shares.end()) == 1.0);
  RC_ASSERT(*std::min_element(ends.shares.begin(), ends.shares.end()) >= 0.0);
}

}  // namespace
}  // namespace neuroshard
