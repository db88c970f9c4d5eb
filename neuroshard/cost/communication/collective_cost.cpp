// The terms, level by level.
#include "neuroshard/cost/communication/collective_cost.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <span>

namespace neuroshard {

namespace {

/// Links that were fitted may have no latency to speak of; steps of messages have.
constexpr double kLeastLatencyMs = 1e-4;

/// Steps of messages among devices of one level.
struct Level {
  int members = 1;
  double bytes = 0.0;  ///< that each member has in a ring
  double gb_per_s = 1.0;
  double latency_ms = 0.0;

  /// Time of `bytes` of a message [ms].
  [[nodiscard]] double message_ms(double of) const { return of / (gb_per_s * 1e6); }
  /// Of a number that is no power of two, those beyond one join before and hear of it after.
  [[nodiscard]] double doublings() const {
    const auto count = static_cast<unsigned>(members);
    return static_cast<double>(std::bit_width(count) - 1) + (std::has_single_bit(count) ? 0 : 2);
  }
  [[nodiscard]] double ring_steps() const { return 2.0 * (members - 1); }
};

std::array<Level, 2> levels_of(const Interconnect& interconnect, const Topology& topology,
                               double bytes) {
  const int per_host = topology.local_world_size;
  const int on_card = std::min(interconnect.devices_per_card, per_host);
  return {Level{per_host, bytes, interconnect.effective_intra_host_gb_per_s(),
                std::max(interconnect.intra_host_latency_ms, kLeastLatencyMs)},
          Level{topology.world_size / per_host, bytes / per_host,
                interconnect.effective_card_gb_per_s() / on_card,
                std::max(interconnect.inter_host_latency_ms, kLeastLatencyMs)}};
}

/// Of as many terms as there are weights.
double dot(std::span<const double> weights, std::span<const double> terms) {
  assert(weights.size() <= terms.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * terms[i];
  return sum;
}

/// The bytes from each memory step to the next, times `ms_per_byte`.
void set_memory_terms(double bytes, double ms_per_byte, std::span<double> terms) {
  double step = kFirstMemoryStep;
  for (double& term : terms) {
    term = ms_per_byte * std::clamp(bytes - step, 0.0, step);
    step *= 2.0;
  }
}

}  // namespace

std::array<double, kNumAllReduceTerms> all_reduce_terms(const Interconnect& interconnect,
                                                        const Topology& topology, double bytes) {
  double doubling_latency = 0.0;
  double ring_latency = 0.0;
  double ring_ms_per_byte = 0.0;
  double doubling_ms_per_byte = 0.0;
  for (const Level& level : levels_of(interconnect, topology, 1.0)) {
    doubling_latency += level.doublings() * level.latency_ms;
    ring_latency += level.ring_steps() * level.latency_ms;
    doubling_ms_per_byte += level.doublings() * level.message_ms(1.0);
    ring_ms_per_byte += level.ring_steps() / level.members * level.message_ms(level.bytes);
  }
  const double more_latency = std::max(ring_latency - doubling_latency, 0.0);
  const double more_ms_per_byte = std::max(doubling_ms_per_byte - ring_ms_per_byte, 0.0);
  std::array<double, kNumAllReduceTerms> terms{1.0, doubling_latency, ring_ms_per_byte * bytes,
                                               ring_latency};
  std::size_t next = 4;
  for (const double step : kAllReduceSteps) {
    terms[next++] = bytes >= step ? more_latency : 0.0;
    terms[next++] = more_ms_per_byte * std::min(bytes, step);
    terms[next++] = ring_ms_per_byte * std::max(bytes - step, 0.0);
  }
  set_memory_terms(bytes, ring_ms_per_byte, std::span(terms).subspan(next));
  return terms;
}

std::array<double, kNumPartialSumTerms> partial_sum_terms(double bytes) {
  const auto ms = [](double of) { return of / (kHostMemoryGbPerS * 1e6); };
  std::array<double, kNumPartialSumTerms> terms{1.0, ms(bytes)};
  std::size_t next = 2;
  for (const double step : kPartialSumSteps) terms[next++] = ms(std::max(bytes - step, 0.0));
  set_memory_terms(bytes, ms(1.0), std::span(terms).subspan(next));
  return terms;
}

double CollectiveWeights::all_reduce_ms(const Interconnect& interconnect, const Topology& topology,
                                        double bytes) const {
  if (bytes <= 0.0 || topology.world_size == 1) return 0.0;
  return dot(all_reduce, all_reduce_terms(interconnect, topology, bytes));
}

double CollectiveWeights::partial_sums_ms(double bytes) const {
  if (bytes <= 0.0) return 0.0;
  return dot(partial_sums, partial_sum_terms(bytes));
}

}  // namespace neuroshard
