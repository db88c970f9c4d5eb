// Features of a topology.
#include "neuroshard/cost/communication/communication_context.h"

#include <algorithm>
#include <cmath>

namespace neuroshard {

CommunicationContext communication_context(const Interconnect& interconnect,
                                           const Topology& topology, AllToAll direction) {
  const double world_size = topology.world_size;
  const double per_host = topology.local_world_size;
  const auto log2_of = [](double value) { return static_cast<float>(std::log2(value)); };
  return {log2_of(world_size),
          log2_of(per_host),
          log2_of(world_size / per_host),
          log2_of(interconnect.effective_intra_host_gb_per_s() /
                  interconnect.effective_card_gb_per_s()),
          log2_of(std::min<double>(interconnect.devices_per_card, per_host)),
          direction == AllToAll::backward ? 1.0F : 0.0F};
}

}  // namespace neuroshard
