// The interconnect of a cluster's devices: the links in a host, the cards between hosts, presets.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// What a host moves for a process that adds up partial sums, where nothing else is known: two
/// thirds of what each of two processes of an EPYC host did, with caches warm
/// (docs/experiments/communication_model.md).
inline constexpr double kHostMemoryGbPerS = 20.0;

/// Hosts of several devices. In a host, each device has a link to and one from a switch that never
/// blocks. Between hosts, traffic passes network cards ("cards" for short), each with a link out
/// and one in, and a fabric that never blocks. Rates are per direction, in 1e9 bytes/s. A measured
/// or fitted rate is an effective one already: its share is 1.
struct Interconnect {
  std::string name{};                  ///< what `Topology::interconnect` gives
  int devices_per_host = 1;            ///< the most that a host of this kind has
  double intra_host_gb_per_s = 0.0;    ///< line rate of a device's link to the others of its host
  double intra_host_latency_ms = 0.0;  ///< of a message in the host
  double intra_host_share = 1.0;       ///< of the line rate that large messages reach
  int devices_per_card = 1;            ///< consecutive devices of a host share a card
  double card_gb_per_s = 0.0;          ///< line rate of a card
  double card_share = 1.0;             ///< as intra_host_share
  double inter_host_latency_ms = 0.0;  ///< of a message between hosts
  std::string source{};                ///< where the numbers are from
  /// That a device's memory reads and writes together: what adding up partial sums costs where it
  /// has not been measured.
  double memory_gb_per_s = kHostMemoryGbPerS;

  /// Rates that large messages reach.
  [[nodiscard]] double effective_intra_host_gb_per_s() const {
    return intra_host_gb_per_s * intra_host_share;
  }
  [[nodiscard]] double effective_card_gb_per_s() const { return card_gb_per_s * card_share; }

  /// Whether messages take the same time on both: the effective rates, the latencies and the
  /// sharing of cards, whatever the two are called and however large their hosts are.
  [[nodiscard]] bool has_links_of(const Interconnect& other) const;
};

/// What a link may be, wherever it is read: beyond these, times are no use and their sums overflow.
inline constexpr double kMinLinkGbPerS = 1e-9;  ///< one byte a second
inline constexpr double kMaxLinkGbPerS = 1e9;
inline constexpr double kMaxLinkLatencyMs = 1e6;

/// Whether it is a rate or a latency within these limits; NaN is none.
[[nodiscard]] constexpr bool is_link_rate(double gb_per_s) {
  return gb_per_s >= kMinLinkGbPerS && gb_per_s <= kMaxLinkGbPerS;
}
[[nodiscard]] constexpr bool is_link_latency(double ms) {
  return ms >= 0.0 && ms <= kMaxLinkLatencyMs;
}

/// Throws InputError "interconnect NAME.field: ..." unless rates and latencies are within the
/// limits, shares in (0, 1], and hosts and cards have devices.
void validate(const Interconnect& interconnect);

/// The presets, from data sheets; the only table of them.
[[nodiscard]] std::span<const Interconnect> interconnects();

/// The preset of this name. Throws InputError listing the names; `place` is the option or field
/// that gave the name, `alternative` another choice there, e.g. "or a file".
[[nodiscard]] const Interconnect& find_interconnect(std::string_view name,
                                                    const std::string& place = "interconnect",
                                                    std::string_view alternative = "");

}  // namespace neuroshard
