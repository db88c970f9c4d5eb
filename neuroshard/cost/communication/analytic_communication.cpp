// The presets of networks and the two-level bytes-over-bandwidth formula.
#include "neuroshard/cost/communication/analytic_communication.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// Start-up of one all-to-all; assumptions of the order that nccl-tests and the OSU benchmarks
/// show for small messages, not data sheet values.
constexpr double kNvlinkLatencyMs = 0.02;
constexpr double kInfinibandLatencyMs = 0.03;
constexpr double kPcieLatencyMs = 0.03;
constexpr double kEthernetLatencyMs = 0.05;
constexpr double kSharedMemoryLatencyMs = 0.005;

/// Between processes of one host through main memory: one copy in and one out of about a quarter
/// of a server's memory bandwidth; an assumption, not a data sheet value.
constexpr double kSharedMemoryGbPerS = 10.0;

constexpr std::array<Interconnect, 7> kInterconnects{{
    {.name = "a100-nvswitch",
     .intra_host_gb_per_s = 300.0,  // NVLink 3, 12 links: 600 GB/s, both directions together
     .inter_host_gb_per_s = 25.0,   // one HDR InfiniBand card of 200 Gb/s per GPU
     .intra_host_latency_ms = kNvlinkLatencyMs,
     .inter_host_latency_ms = kInfinibandLatencyMs,
     .devices_per_host = 8,
     .source = "NVIDIA DGX A100 data sheet: 8 GPUs, 600 GB/s NVLink, 8 x 200 Gb/s InfiniBand"},
    {.name = "h100-nvswitch",
     .intra_host_gb_per_s = 450.0,  // NVLink 4, 18 links: 900 GB/s, both directions together
     .inter_host_gb_per_s = 50.0,   // one NDR InfiniBand card of 400 Gb/s per GPU
     .intra_host_latency_ms = kNvlinkLatencyMs,
     .inter_host_latency_ms = kInfinibandLatencyMs,
     .devices_per_host = 8,
     .source = "NVIDIA DGX H100 data sheet: 8 GPUs, 900 GB/s NVLink, 8 x 400 Gb/s InfiniBand"},
    {.name = "pcie4",
     .intra_host_gb_per_s = 31.5,   // PCIe 4.0 x16: 16 GT/s * 16 lanes * 128/130 / 8
     .inter_host_gb_per_s = 3.125,  // one card of 100 Gb/s shared by 4 GPUs
     .intra_host_latency_ms = kPcieLatencyMs,
     .inter_host_latency_ms = kEthernetLatencyMs,
     .devices_per_host = 4,
     .source = "PCI Express 4.0 specification, x16; 100 Gb/s Ethernet shared by 4 GPUs"},
    {.name = "ethernet-10g",
     .intra_host_gb_per_s = kSharedMemoryGbPerS,
     .inter_host_gb_per_s = 1.25,
     .intra_host_latency_ms = kSharedMemoryLatencyMs,
     .inter_host_latency_ms = kEthernetLatencyMs,
     .devices_per_host = 1,
     .source = "IEEE 802.3ae line rate, one card per host"},
    {.name = "ethernet-25g",
     .intra_host_gb_per_s = kSharedMemoryGbPerS,
     .inter_host_gb_per_s = 3.125,
     .intra_host_latency_ms = kSharedMemoryLatencyMs,
     .inter_host_latency_ms = kEthernetLatencyMs,
     .devices_per_host = 1,
     .source = "IEEE 802.3by line rate, one card per host"},
    {.name = "ethernet-50g",
     .intra_host_gb_per_s = kSharedMemoryGbPerS,
     .inter_host_gb_per_s = 6.25,
     .intra_host_latency_ms = kSharedMemoryLatencyMs,
     .inter_host_latency_ms = kEthernetLatencyMs,
     .devices_per_host = 1,
     .source = "IEEE 802.3cd line rate, one card per host"},
    {.name = "ethernet-100g",
     .intra_host_gb_per_s = kSharedMemoryGbPerS,
     .inter_host_gb_per_s = 12.5,
     .intra_host_latency_ms = kSharedMemoryLatencyMs,
     .inter_host_latency_ms = kEthernetLatencyMs,
     .devices_per_host = 1,
     .source = "IEEE 802.3ba line rate, one card per host"},
}};

/// Milliseconds of a level on which a device sends and receives so many columns' shares.
double level_ms(double sent_columns, double received_columns, double ms_per_column,
                double latency_ms) {
  return std::max(sent_columns, received_columns) * ms_per_column + latency_ms;
}

}  // namespace

std::span<const Interconnect> interconnects() { return kInterconnects; }

const Interconnect& find_interconnect(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Interconnect& interconnect : kInterconnects) {
    if (interconnect.name == name) return interconnect;
    names.push_back(interconnect.name);
  }
  throw InputError("interconnect", fmt::format("one of {}", fmt::join(names, ", ")),
                   fmt::format("\"{}\"", name));
}

AnalyticCommunicationModel::AnalyticCommunicationModel(const Interconnect& interconnect,
                                                       double effective_share)
    : interconnect_(interconnect),
      name_(fmt::format("analytic-{}", interconnect.name)),
      effective_share_(effective_share) {
  const auto require = [&](bool ok, const char* field, const char* expected, double actual) {
    if (!ok) {
      throw InputError(fmt::format("interconnect {}.{}", interconnect.name, field), expected,
                       fmt::format("{}", actual));
    }
  };
  const auto require_rate = [&](double rate, const char* field) {
    require(std::isfinite(rate) && rate > 0.0, field, "a bandwidth above 0", rate);
  };
  const auto require_latency = [&](double latency, const char* field) {
    require(std::isfinite(latency) && latency >= 0.0, field, "a time of at least 0", latency);
  };
  require_rate(interconnect.intra_host_gb_per_s, "intra_host_gb_per_s");
  require_rate(interconnect.inter_host_gb_per_s, "inter_host_gb_per_s");
  require_latency(interconnect.intra_host_latency_ms, "intra_host_latency_ms");
  require_latency(interconnect.inter_host_latency_ms, "inter_host_latency_ms");
  require(effective_share > 0.0 && effective_share <= 1.0, "effective_share",
          "a share above 0, at most 1", effective_share);
}

std::string AnalyticCommunicationModel::name() const { return name_; }

AnalyticCommunicationModel::ColumnTimes AnalyticCommunicationModel::column_times(
    const Topology& topology, std::int64_t batch_size) const {
  const double bytes_per_column = 4.0 * static_cast<double>(batch_size) / topology.world_size;
  const double ms_times_gb_per_s = bytes_per_column / (1e6 * effective_share_);
  return {ms_times_gb_per_s / interconnect_.intra_host_gb_per_s,
          ms_times_gb_per_s / interconnect_.inter_host_gb_per_s};
}

double AnalyticCommunicationModel::floor_ms(const Topology& topology, std::int64_t batch_size,
                                            double columns) const {
  const int world_size = topology.world_size;
  const int per_host = topology.local_world_size;
  const ColumnTimes times = column_times(topology, batch_size);
  double transfer_ms = 0.0;
  if (per_host > 1) {
    transfer_ms = level_ms(columns * (per_host - 1), 0.0, times.intra_ms,
                           interconnect_.intra_host_latency_ms);
  }
  if (world_size > per_host) {
    transfer_ms =
        std::max(transfer_ms, level_ms(columns * (world_size - per_host), 0.0, times.inter_ms,
                                       interconnect_.inter_host_latency_ms));
  }
  return 2.0 * transfer_ms;
}

void AnalyticCommunicationModel::backward(const Topology& topology, std::int64_t batch_size,
                                          std::span<const double> columns,
                                          std::span<double> backward_ms) const {
  const int world_size = topology.world_size;
  const int per_host = topology.local_world_size;
  assert(columns.size() == static_cast<std::size_t>(world_size));
  const auto [intra_ms, inter_ms] = column_times(topology, batch_size);
  const double all_columns = std::accumulate(columns.begin(), columns.end(), 0.0);

  for (int host = 0; host < world_size; host += per_host) {
    const auto own = columns.subspan(host, per_host);
    const double host_columns = std::accumulate(own.begin(), own.end(), 0.0);
    for (int d = host; d < host + per_host; ++d) {
      double transfer_ms = 0.0;
      if (per_host > 1) {
        transfer_ms = level_ms(columns[d] * (per_host - 1), host_columns - columns[d], intra_ms,
                               interconnect_.intra_host_latency_ms);
      }
      if (world_size > per_host) {
        transfer_ms = std::max(
            transfer_ms, level_ms(columns[d] * (world_size - per_host), all_columns - host_columns,
                                  inter_ms, interconnect_.inter_host_latency_ms));
      }
      backward_ms[d] = transfer_ms;
    }
  }
}

void AnalyticCommunicationModel::forward(const Topology& topology, std::int64_t batch_size,
                                         std::span<const double> columns,
                                         std::span<const double> start_ms,
                                         std::span<double> forward_ms) const {
  backward(topology, batch_size, columns, forward_ms);  // the same transfers, turned round
  const double last_start = *std::max_element(start_ms.begin(), start_ms.end());
  for (std::size_t d = 0; d < forward_ms.size(); ++d) forward_ms[d] += last_start - start_ms[d];
}

std::vector<std::string> AnalyticCommunicationModel::outside_range(const Task& task) const {
  const int per_host = task.topology.local_world_size;
  if (per_host <= interconnect_.devices_per_host) return {};
  return {fmt::format("topology.local_world_size: {} describes hosts of at most {} devices, got {}",
                      interconnect_.name, interconnect_.devices_per_host, per_host)};
}

}  // namespace neuroshard
