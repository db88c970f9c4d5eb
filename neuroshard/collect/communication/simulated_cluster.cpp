// Presets of simulated clusters.
#include "neuroshard/collect/communication/simulated_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// NCCL's developers give 370 of 450 GB/s for NVLink 4 (github.com/NVIDIA/nccl-tests, issue 212).
constexpr double kNcclShare = 0.82;
/// InfiniBand: 4,096 bytes of payload in packets with 66 bytes of headers, less acknowledgements.
constexpr double kInfinibandShare = 0.97;
/// TCP over Ethernet: 1,448 bytes of payload in frames that take 1,538 on the wire.
constexpr double kTcpShare = 0.94;

constexpr double kNvlinkLatencyMs = 0.004;      // a kernel's peer-to-peer message through NVSwitch
constexpr double kPcieLatencyMs = 0.006;        // the same over PCIe switches
constexpr double kInfinibandLatencyMs = 0.008;  // GPU to GPU through two cards
constexpr double kTcpLatencyMs = 0.030;         // two kernels' network stacks and a switch
constexpr double kSharedMemoryGbPerS = 10.0;    // copied in and out of a segment by one core
constexpr double kSharedMemoryLatencyMs = 0.001;

constexpr SimulatedCluster ethernet(std::string_view name, double gb_per_s,
                                    std::string_view source) {
  return {.name = name,
          .devices_per_host = 1,
          .intra_host_gb_per_s = kSharedMemoryGbPerS,
          .intra_host_latency_ms = kSharedMemoryLatencyMs,
          .devices_per_card = 1,
          .card_gb_per_s = gb_per_s,
          .inter_host_latency_ms = kTcpLatencyMs,
          .intra_host_share = 1.0,
          .card_share = kTcpShare,
          .source = source};
}

constexpr std::array<SimulatedCluster, 7> kClusters{{
    {.name = "a100-nvswitch",
     .devices_per_host = 8,
     .intra_host_gb_per_s = 300.0,
     .intra_host_latency_ms = kNvlinkLatencyMs,
     .devices_per_card = 1,
     .card_gb_per_s = 25.0,
     .inter_host_latency_ms = kInfinibandLatencyMs,
     .intra_host_share = kNcclShare,
     .card_share = kInfinibandShare,
     .source = "NVIDIA DGX A100 data sheet: 8 GPUs, 600 GB/s NVLink (both ways together), one "
               "200 Gb/s InfiniBand card per GPU"},
    {.name = "h100-nvswitch",
     .devices_per_host = 8,
     .intra_host_gb_per_s = 450.0,
     .intra_host_latency_ms = kNvlinkLatencyMs,
     .devices_per_card = 1,
     .card_gb_per_s = 50.0,
     .inter_host_latency_ms = kInfinibandLatencyMs,
     .intra_host_share = kNcclShare,
     .card_share = kInfinibandShare,
     .source = "NVIDIA DGX H100 data sheet: 8 GPUs, 900 GB/s NVLink (both ways together), one "
               "400 Gb/s InfiniBand card per GPU"},
    {.name = "pcie4",
     .devices_per_host = 4,
     .intra_host_gb_per_s = 31.5,
     .intra_host_latency_ms = kPcieLatencyMs,
     .devices_per_card = 4,
     .card_gb_per_s = 12.5,
     .inter_host_latency_ms = kTcpLatencyMs,
     .intra_host_share = 0.85,
     .card_share = kTcpShare,
     .source = "PCI Express 4.0 specification, x16 (16 GT/s * 16 * 128/130 / 8); one 100 Gb/s "
               "Ethernet card for 4 GPUs"},
    ethernet("ethernet-10g", 1.25, "IEEE 802.3ae line rate, one card per host"),
    ethernet("ethernet-25g", 3.125, "IEEE 802.3by line rate, one card per host"),
    ethernet("ethernet-50g", 6.25, "IEEE 802.3cd line rate, one card per host"),
    ethernet("ethernet-100g", 12.5, "IEEE 802.3ba line rate, one card per host"),
}};

}  // namespace

std::span<const SimulatedCluster> simulated_clusters() { return kClusters; }

const SimulatedCluster& find_simulated_cluster(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SimulatedCluster& cluster : kClusters) {
    if (cluster.name == name) return cluster;
    names.push_back(cluster.name);
  }
  throw InputError(
      "platform",
      fmt::format("one of {}, or a SimGrid platform file (.xml)", fmt::join(names, ", ")),
      fmt::format("\"{}\"", name));
}

}  // namespace neuroshard
