// The busiest link.
#include "neuroshard/cost/communication/transfer_time.h"

#include <algorithm>
#include <map>

namespace neuroshard {

double transfer_ms(const Interconnect& interconnect, const Topology& topology,
                   std::span<const DeviceTransfer> transfers) {
  const int per_host = topology.local_world_size;
  // Cards are numbered host by host; devices of a host share them in order.
  const int cards_per_host =
      (per_host + interconnect.devices_per_card - 1) / interconnect.devices_per_card;
  const auto card = [&](int device) {
    return device / per_host * cards_per_host + device % per_host / interconnect.devices_per_card;
  };
  std::map<int, double> link_out;  // bytes, by device
  std::map<int, double> link_in;
  std::map<int, double> card_out;
  std::map<int, double> card_in;
  double latency_ms = 0.0;
  for (const DeviceTransfer& transfer : transfers) {
    const auto bytes = static_cast<double>(transfer.bytes);
    if (transfer.from / per_host == transfer.to / per_host) {
      link_out[transfer.from] += bytes;
      link_in[transfer.to] += bytes;
      latency_ms = std::max(latency_ms, interconnect.intra_host_latency_ms);
    } else {
      card_out[card(transfer.from)] += bytes;
      card_in[card(transfer.to)] += bytes;
      latency_ms = std::max(latency_ms, interconnect.inter_host_latency_ms);
    }
  }
  double busiest_ms = 0.0;
  const auto consider = [&](const std::map<int, double>& loads, double gb_per_s) {
    for (const auto& [link, bytes] : loads) {
      busiest_ms = std::max(busiest_ms, bytes / (gb_per_s * 1e6));
    }
  };
  consider(link_out, interconnect.effective_intra_host_gb_per_s());
  consider(link_in, interconnect.effective_intra_host_gb_per_s());
  consider(card_out, interconnect.effective_card_gb_per_s());
  consider(card_in, interconnect.effective_card_gb_per_s());
  return busiest_ms + latency_ms;
}

}  // namespace neuroshard
