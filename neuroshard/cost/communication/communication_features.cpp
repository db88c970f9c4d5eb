// Features of the devices of an all-to-all.
#include "neuroshard/cost/communication/communication_features.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace neuroshard {

namespace {

/// Longer lags make no difference: the early device has long sent everything.
constexpr double kLongestLag = 4.0;
/// Of less than this, the share that a device has sent counts as 1.
constexpr double kSmallestTime = 1e-9;

double log2_of(double value) { return std::log2(std::max(value, kSmallestTime)); }

}  // namespace

const std::vector<std::string>& communication_feature_names() {
  static const std::vector<std::string> names{
      "relative_end",  "lag",        "intra_send", "intra_receive", "card_send",
      "card_receive",  "sent_early", "log2_rest",  "log2_latency",  "log2_world_size",
      "log2_per_host", "log2_hosts", "log2_rates", "log2_on_card",  "backward",
  };
  return names;
}

void communication_features(LinkSchedule& schedule, AllToAll direction,
                            std::span<const double> columns, std::span<const double> start_ms,
                            CommunicationFeatures& features) {
  const auto devices = static_cast<Eigen::Index>(columns.size());
  const auto count = static_cast<Eigen::Index>(communication_feature_names().size());
  features.values.resize(count, devices);
  features.ends_ms.resize(columns.size());
  schedule.ends(columns, start_ms, features.ends_ms);
  const double last = *std::max_element(start_ms.begin(), start_ms.end());
  features.last_start_ms = last;
  const double rest = *std::max_element(features.ends_ms.begin(), features.ends_ms.end()) - last;
  double together = 0.0;
  for (const LinkSchedule::Loads& load : schedule.loads()) {
    together = std::max({together, load.intra_send_ms, load.intra_receive_ms, load.card_send_ms,
                         load.card_receive_ms});
  }
  const double latency = schedule.latency_ms();
  const double unit = std::max(together + latency, kSmallestTime);
  const Interconnect& interconnect = schedule.interconnect();
  const double world_size = static_cast<double>(devices);
  const double per_host = schedule.devices_per_host();
  // Features that are the same for all devices.
  const std::array<double, 8> shared{
      log2_of(rest / unit),
      log2_of(latency / unit),
      log2_of(world_size),
      log2_of(per_host),
      log2_of(world_size / per_host),
      log2_of(interconnect.effective_intra_host_gb_per_s() /
              interconnect.effective_card_gb_per_s()),
      log2_of(std::min<double>(interconnect.devices_per_card, per_host)),
      direction == AllToAll::backward ? 1.0 : 0.0};
  for (Eigen::Index d = 0; d < devices; ++d) {
    const LinkSchedule::Loads& load = schedule.loads()[static_cast<std::size_t>(d)];
    const double lag = last - start_ms[static_cast<std::size_t>(d)];
    const double send = std::max(load.intra_send_ms, load.card_send_ms);
    Eigen::Index next = 0;
    const auto add = [&](double value) { features.values(next++, d) = static_cast<float>(value); };
    add((features.ends_ms[static_cast<std::size_t>(d)] - last) / std::max(rest, kSmallestTime));
    add(std::min(lag / unit, kLongestLag));
    add(load.intra_send_ms / unit);
    add(load.intra_receive_ms / unit);
    add(load.card_send_ms / unit);
    add(load.card_receive_ms / unit);
    add(std::min(lag / std::max(send, kSmallestTime), 1.0));
    for (const double value : shared) add(value);
  }
}

}  // namespace neuroshard
