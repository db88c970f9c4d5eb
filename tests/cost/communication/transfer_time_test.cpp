// The time of transfers is that of the busiest link.
#include "neuroshard/cost/communication/transfer_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace neuroshard {
namespace {

/// Two hosts of four devices, two to a card: 10 GB/s in the host, 2 GB/s a card.
Interconnect links_of_hosts() {
  Interconnect interconnect;
  interconnect.intra_host_gb_per_s = 10.0;
  interconnect.intra_host_latency_ms = 0.5;
  interconnect.devices_per_card = 2;
  interconnect.card_gb_per_s = 4.0;
  interconnect.card_share = 0.5;
  interconnect.inter_host_latency_ms = 2.0;
  return interconnect;
}

Topology hosts() {
  Topology topology;
  topology.world_size = 8;
  topology.local_world_size = 4;
  return topology;
}

double ms(const std::vector<DeviceTransfer>& transfers) {
  return transfer_ms(links_of_hosts(), hosts(), transfers);
}

constexpr std::int64_t kMegabyte = 1'000'000;

TEST(TransferTime, IsThatOfTheBusiestLink) {
  EXPECT_EQ(ms({}), 0.0);
  EXPECT_DOUBLE_EQ(ms({{0, 1, 10 * kMegabyte}}), 1.0 + 0.5);
  EXPECT_DOUBLE_EQ(ms({{0, 4, 10 * kMegabyte}}), 5.0 + 2.0);
  // Both at once: in both directions, and in the host as well as by the card.
  EXPECT_DOUBLE_EQ(ms({{0, 1, 10 * kMegabyte}, {1, 0, 10 * kMegabyte}}), 1.0 + 0.5);
  EXPECT_DOUBLE_EQ(ms({{0, 1, 10 * kMegabyte}, {0, 4, 10 * kMegabyte}}), 5.0 + 2.0);
  // One sender, or one receiver.
  EXPECT_DOUBLE_EQ(ms({{0, 1, 10 * kMegabyte}, {0, 2, 10 * kMegabyte}}), 2.0 + 0.5);
  EXPECT_DOUBLE_EQ(ms({{1, 0, 10 * kMegabyte}, {2, 0, 10 * kMegabyte}}), 2.0 + 0.5);
}

TEST(TransferTime, DevicesShareCards) {
  EXPECT_DOUBLE_EQ(ms({{0, 4, 10 * kMegabyte}, {1, 6, 10 * kMegabyte}}), 10.0 + 2.0);
  EXPECT_DOUBLE_EQ(ms({{0, 4, 10 * kMegabyte}, {2, 6, 10 * kMegabyte}}), 5.0 + 2.0);
  // A device that is gone was on a host of its own kind.
  EXPECT_DOUBLE_EQ(ms({{8, 0, 10 * kMegabyte}}), 5.0 + 2.0);
}

}  // namespace
}  // namespace neuroshard
