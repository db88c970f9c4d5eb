// Rings within and between hosts.
#include "neuroshard/cost/communication/ring_all_reduce.h"

#include <algorithm>

namespace neuroshard {

namespace {

/// Reduce-scatter and all-gather of `bytes` on each of `members`, of which each step sends a share
/// at `gb_per_s`.
double ring_ms(int members, double bytes, double gb_per_s, double latency_ms) {
  if (members < 2) return 0.0;
  const double steps = 2.0 * (members - 1);
  return steps * (bytes / members / (gb_per_s * 1e6) + latency_ms);
}

}  // namespace

double ring_all_reduce_ms(const Interconnect& interconnect, const Topology& topology,
                          double bytes) {
  if (bytes <= 0.0) return 0.0;
  const int per_host = topology.local_world_size;
  const int hosts = topology.world_size / per_host;
  const int on_card = std::min(interconnect.devices_per_card, per_host);
  return ring_ms(per_host, bytes, interconnect.effective_intra_host_gb_per_s(),
                 interconnect.intra_host_latency_ms) +
         ring_ms(hosts, bytes / per_host, interconnect.effective_card_gb_per_s() / on_card,
                 interconnect.inter_host_latency_ms);
}

}  // namespace neuroshard
