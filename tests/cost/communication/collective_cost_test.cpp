// The terms of all-reduces and partial sums: never negative, never falling, exact for the two
// algorithms that libraries take.
#include "neuroshard/cost/communication/collective_cost.h"
#include "neuroshard/core/interconnect.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "neuroshard/cost/communication/ring_all_reduce.h"

namespace neuroshard {
namespace {

Topology topology_of(int world_size, int local_world_size) {
  Topology topology;
  topology.world_size = world_size;
  topology.local_world_size = local_world_size;
  return topology;
}

TEST(CollectiveCost, ASumOfTermsIsARingAsTheLinksRatesSay) {
  for (const char* name : {"pcie4", "a100-nvswitch", "ethernet-10g"}) {
    const Interconnect& interconnect = find_interconnect(name);
    for (const Topology& topology :
         {topology_of(2, 1), topology_of(7, 1), topology_of(8, 4), topology_of(24, 8)}) {
      CollectiveWeights ring;
      ring.all_reduce.assign(kNumAllReduceTerms, 0.0);
      ring.all_reduce[2] = ring.all_reduce[3] = 1.0;
      for (const double bytes : {4.0, 1e4, 1e8}) {
        EXPECT_NEAR(ring.all_reduce_ms(interconnect, topology, bytes),
                    ring_all_reduce_ms(interconnect, topology, bytes),
                    1e-9 * ring_all_reduce_ms(interconnect, topology, bytes))
            << name << ", " << topology.world_size << ", " << bytes;
      }
    }
  }
}

TEST(CollectiveCost, OrDoublingBelowASizeAndARingFromThereOn) {
  const Interconnect& interconnect = find_interconnect("ethernet-10g");
  const Topology topology = topology_of(8, 1);
  CollectiveWeights both;
  both.all_reduce.assign(kNumAllReduceTerms, 0.0);
  both.all_reduce[1] = both.all_reduce[2] = 1.0;
  both.all_reduce[4 + 3] = both.all_reduce[4 + 4] = 1.0;  // of 10,000 bytes
  const double rate = interconnect.effective_card_gb_per_s() * 1e6;
  const double latency = interconnect.inter_host_latency_ms;
  EXPECT_NEAR(both.all_reduce_ms(interconnect, topology, 9'996), 3 * (latency + 9'996 / rate),
              1e-9);
  // Above, what the doubling's last bytes took more stays: a hundredth of the latencies.
  EXPECT_NEAR(both.all_reduce_ms(interconnect, topology, 1e6),
              ring_all_reduce_ms(interconnect, topology, 1e6), 0.02);
}

TEST(CollectiveCost, NothingAndADeviceAloneCostNothing) {
  const CollectiveWeights weights{std::vector<double>(kNumAllReduceTerms, 1.0),
                                  std::vector<double>(kNumPartialSumTerms, 1.0)};
  const Interconnect& interconnect = find_interconnect("pcie4");
  EXPECT_EQ(weights.all_reduce_ms(interconnect, topology_of(4, 4), 0.0), 0.0);
  EXPECT_EQ(weights.all_reduce_ms(interconnect, topology_of(1, 1), 1e9), 0.0);
  EXPECT_EQ(weights.partial_sums_ms(0.0), 0.0);
}

RC_GTEST_PROP(CollectiveCostProperty, TermsAreNeverNegativeAndNeverFall,
              (std::uint64_t first, std::uint64_t second)) {
  const double fewer = static_cast<double>(std::min(first, second) % (std::uint64_t{1} << 40));
  const double more = fewer + static_cast<double>(std::max(first, second) % (1 << 20));
  const auto& presets = interconnects();
  const Interconnect& interconnect = presets[first % presets.size()];
  const int per_host = static_cast<int>(1 + second % 8);
  const Topology topology = topology_of(per_host * static_cast<int>(1 + first % 9), per_host);
  const auto a = all_reduce_terms(interconnect, topology, fewer);
  const auto b = all_reduce_terms(interconnect, topology, more);
  for (std::size_t i = 0; i < a.size(); ++i) RC_ASSERT(a[i] >= 0.0 && b[i] >= a[i]);
  const auto c = partial_sum_terms(fewer);
  const auto d = partial_sum_terms(more);
  for (std::size_t i = 0; i < c.size(); ++i) RC_ASSERT(c[i] >= 0.0 && d[i] >= c[i]);
}

}  // namespace
}  // namespace neuroshard
