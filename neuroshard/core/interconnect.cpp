// The presets of interconnects.
#include "neuroshard/core/interconnect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/suggestion.h"

namespace neuroshard {

namespace {

/// NCCL's developers give 370 of 450 GB/s for NVLink 4 (github.com/NVIDIA/nccl-tests, issue 212).
constexpr double kNcclShare = 0.82;
/// An assumption, no data sheet's: packets have headers, and peers share the switch.
constexpr double kPcieShare = 0.85;
/// InfiniBand: 4,096 bytes of payload in packets with 66 bytes of headers, less acknowledgements.
constexpr double kInfinibandShare = 0.97;
/// TCP over Ethernet: 1,448 bytes of payload in frames that take 1,538 on the wire.
constexpr double kTcpShare = 0.94;

constexpr double kNvlinkLatencyMs = 0.004;      // a kernel's peer-to-peer message through NVSwitch
constexpr double kPcieLatencyMs = 0.006;        // the same over PCIe switches
constexpr double kInfinibandLatencyMs = 0.008;  // GPU to GPU through two cards
constexpr double kTcpLatencyMs = 0.030;         // the TCP stacks of two kernels and a switch
constexpr double kSharedMemoryGbPerS = 10.0;    // copied in and out of a segment by one core
constexpr double kSharedMemoryLatencyMs = 0.001;

/// CPU hosts of one process each.
Interconnect ethernet(const char* name, double gb_per_s, const char* source) {
  return {.name = name,
          .devices_per_host = 1,
          .intra_host_gb_per_s = kSharedMemoryGbPerS,
          .intra_host_latency_ms = kSharedMemoryLatencyMs,
          .intra_host_share = 1.0,
          .devices_per_card = 1,
          .card_gb_per_s = gb_per_s,
          .card_share = kTcpShare,
          .inter_host_latency_ms = kTcpLatencyMs,
          .source = source};
}

std::vector<Interconnect> make_presets() {
  return {
      {.name = "a100-nvswitch",
       .devices_per_host = 8,
       .intra_host_gb_per_s = 300.0,
       .intra_host_latency_ms = kNvlinkLatencyMs,
       .intra_host_share = kNcclShare,
       .devices_per_card = 1,
       .card_gb_per_s = 25.0,
       .card_share = kInfinibandShare,
       .inter_host_latency_ms = kInfinibandLatencyMs,
       .source = "NVIDIA DGX A100 data sheet: 8 GPUs, 600 GB/s NVLink (both ways together), one "
                 "200 Gb/s InfiniBand card per GPU; 40 GB of HBM2 with 1,555 GB/s",
       .memory_gb_per_s = 1555.0},
      {.name = "h100-nvswitch",
       .devices_per_host = 8,
       .intra_host_gb_per_s = 450.0,
       .intra_host_latency_ms = kNvlinkLatencyMs,
       .intra_host_share = kNcclShare,
       .devices_per_card = 1,
       .card_gb_per_s = 50.0,
       .card_share = kInfinibandShare,
       .inter_host_latency_ms = kInfinibandLatencyMs,
       .source = "NVIDIA DGX H100 data sheet: 8 GPUs, 900 GB/s NVLink (both ways together), one "
                 "400 Gb/s InfiniBand card per GPU; 80 GB of HBM3 with 3,350 GB/s",
       .memory_gb_per_s = 3350.0},
      {.name = "pcie4",
       .devices_per_host = 4,
       .intra_host_gb_per_s = 31.5,
       .intra_host_latency_ms = kPcieLatencyMs,
       .intra_host_share = kPcieShare,
       .devices_per_card = 4,
       .card_gb_per_s = 12.5,
       .card_share = kTcpShare,
       .inter_host_latency_ms = kTcpLatencyMs,
       .source = "PCI Express 4.0 specification, x16 (16 GT/s * 16 * 128/130 / 8); one 100 Gb/s "
                 "Ethernet card for 4 GPUs; memory as of an NVIDIA GeForce RTX 2080 Ti, 616 GB/s",
       .memory_gb_per_s = 616.0},
      ethernet("ethernet-10g", 1.25, "IEEE 802.3ae line rate, one card per host"),
      ethernet("ethernet-25g", 3.125, "IEEE 802.3by line rate, one card per host"),
      ethernet("ethernet-50g", 6.25, "IEEE 802.3cd line rate, one card per host"),
      ethernet("ethernet-100g", 12.5, "IEEE 802.3ba line rate, one card per host"),
  };
}

}  // namespace

bool Interconnect::has_links_of(const Interconnect& other) const {
  return effective_intra_host_gb_per_s() == other.effective_intra_host_gb_per_s() &&
         intra_host_latency_ms == other.intra_host_latency_ms &&
         effective_card_gb_per_s() == other.effective_card_gb_per_s() &&
         inter_host_latency_ms == other.inter_host_latency_ms &&
         devices_per_card == other.devices_per_card;
}

void validate(const Interconnect& interconnect) {
  const auto require = [&](bool ok, const char* field, const char* expected, double actual) {
    if (!ok) {
      throw InputError(fmt::format("interconnect {}.{}", interconnect.name, field), expected,
                       fmt::format("{}", actual));
    }
  };
  const auto require_rate = [&](double rate, const char* field) {
    require(is_link_rate(rate), field, "a bandwidth between 1e-9 and 1e9 GB/s", rate);
  };
  const auto require_latency = [&](double latency, const char* field) {
    require(is_link_latency(latency), field, "a time between 0 and 1e6 ms", latency);
  };
  const auto require_share = [&](double share, const char* field) {
    require(share > 0.0 && share <= 1.0, field, "a share above 0, at most 1", share);
  };
  const auto require_devices = [&](int devices, const char* field) {
    require(devices >= 1, field, "at least 1 device", devices);
  };
  require_devices(interconnect.devices_per_host, "devices_per_host");
  require_rate(interconnect.intra_host_gb_per_s, "intra_host_gb_per_s");
  require_latency(interconnect.intra_host_latency_ms, "intra_host_latency_ms");
  require_share(interconnect.intra_host_share, "intra_host_share");
  require_devices(interconnect.devices_per_card, "devices_per_card");
  require_rate(interconnect.card_gb_per_s, "card_gb_per_s");
  require_share(interconnect.card_share, "card_share");
  require_latency(interconnect.inter_host_latency_ms, "inter_host_latency_ms");
}

std::span<const Interconnect> interconnects() {
  static const std::vector<Interconnect> presets = make_presets();
  return presets;
}

const Interconnect& find_interconnect(std::string_view name, const std::string& place,
                                      std::string_view alternative) {
  std::vector<std::string> names;
  for (const Interconnect& interconnect : interconnects()) {
    if (interconnect.name == name) return interconnect;
    names.emplace_back(interconnect.name);
  }
  throw InputError(place, fmt::format("one of {}{}", fmt::join(names, ", "), alternative),
                   fmt::format("\"{}\"{}", name, suggestion(name, names)));
}

}  // namespace neuroshard
