// An estimate of the all-to-alls from data sheets: bytes over bandwidth on two levels of network.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "neuroshard/cost/communication/communication_cost_model.h"

namespace neuroshard {

/// A machine's network as its vendors state it. Bandwidths are line rates per device and per
/// direction, in 1e9 bytes/s; a device's share of its host's network cards where they are shared.
struct Interconnect {
  std::string_view name;
  double intra_host_gb_per_s = 0.0;
  double inter_host_gb_per_s = 0.0;
  double intra_host_latency_ms = 0.0;
  double inter_host_latency_ms = 0.0;
  int devices_per_host = 1;  ///< the most devices a host of this kind has
  std::string_view source;   ///< where the numbers are from
};

/// All presets.
[[nodiscard]] std::span<const Interconnect> interconnects();

/// The preset of this name. Throws InputError listing the names.
[[nodiscard]] const Interconnect& find_interconnect(std::string_view name);

/// Share of the line rate that an all-to-all of large messages reaches. NCCL's developers give 370
/// of 450 GB/s (0.82) for NVLink 4 (github.com/NVIDIA/nccl-tests, issue 212); 0.8 for all levels.
inline constexpr double kEffectiveNetworkShare = 0.8;

/// Always an estimate. With W devices, L per host, batch B, and a device's columns[d] as fp32,
/// one column of one device's share of the batch is u = 4 B / W bytes (B / W as a real number):
///
///   sent_d     = u * columns[d] * (peers on the level)          L - 1 in the host, W - L outside
///   received_d = u * sum of the level's peers' columns
///   level_d    = max(sent_d, received_d) / (bandwidth * share) + latency   (0 without peers)
///   transfer_d = max over the two levels, which overlap
///
///   forward_ms[d]  = (max over j of start_ms[j]) + transfer_d - start_ms[d]
///   backward_ms[d] = transfer_d      (what was sent is received and the reverse; all start at 0)
///
/// One device alone costs 0. Time O(W), no allocation.
class AnalyticCommunicationModel : public CommunicationCostModel {
 public:
  /// Throws InputError unless bandwidths are above 0, latencies at least 0 and the share in (0, 1].
  explicit AnalyticCommunicationModel(const Interconnect& interconnect,
                                      double effective_share = kEffectiveNetworkShare);

  /// "analytic-<interconnect>".
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] bool is_estimate() const override { return true; }
  void forward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
               std::span<const double> start_ms, std::span<double> forward_ms) const override;
  void backward(const Topology& topology, std::int64_t batch_size, std::span<const double> columns,
                std::span<double> backward_ms) const override;
  /// Twice the transfer of what the device itself sends.
  [[nodiscard]] double floor_ms(const Topology& topology, std::int64_t batch_size,
                                double columns) const override;
  /// A line if the hosts have more devices than the preset's, whose share of the network it is.
  [[nodiscard]] std::vector<std::string> outside_range(const Task& task) const override;

 private:
  /// What one column of a device's share of the batch takes on the way to one peer [ms].
  struct ColumnTimes {
    double intra_ms, inter_ms;
  };
  [[nodiscard]] ColumnTimes column_times(const Topology& topology, std::int64_t batch_size) const;

  Interconnect interconnect_;
  std::string name_;
  double effective_share_;
};

}  // namespace neuroshard
