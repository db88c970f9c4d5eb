// What all-reduces and additions of partial sums cost, as learned: sums of terms that never fall
// when there are more bytes, with weights that are not negative.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "neuroshard/core/interconnect.h"
#include "neuroshard/core/task.h"

namespace neuroshard {

/// Sizes from which on an algorithm, or a cache, may be another one [bytes].
inline constexpr std::array<double, 5> kAllReduceSteps{1024, 10'000, 65'536, 1 << 20, 1 << 24};
inline constexpr std::array<double, 4> kPartialSumSteps{1 << 17, 1 << 20, 1 << 23, 1 << 26};

/// Powers of two [bytes], from the first one on, between two of which a byte may take longer or
/// less than before and after: what caches and shared memory do.
inline constexpr double kFirstMemoryStep = 1024;
inline constexpr std::size_t kNumMemorySteps = 18;

/// Of links alone, or of the steps above alone: the terms of what has no memory, as simulations do.
inline constexpr std::size_t kNumLinkAllReduceTerms = 4 + 3 * kAllReduceSteps.size();
inline constexpr std::size_t kNumPlainPartialSumTerms = 2 + kPartialSumSteps.size();
inline constexpr std::size_t kNumAllReduceTerms = kNumLinkAllReduceTerms + kNumMemorySteps;
inline constexpr std::size_t kNumPartialSumTerms = kNumPlainPartialSumTerms + kNumMemorySteps;

/// The terms of an all-reduce of `bytes` on each device [ms], none negative, none falling when
/// `bytes` rises. With D = steps of recursive doubling, R = steps of rings within and between hosts
/// (ring_all_reduce.h), each level with its latency and with the rate of a device's link or of its
/// share of a card:
///   1;  the latency of D;  the time that the rings' messages take;  that of R's latency;
///   for each step s: from s bytes on, what the rings' latency is above the doubling's;  what the
///   doubling's messages up to s bytes take above the rings';  the rings' bytes above s;
///   for each memory step s: the rings' bytes from s to 2 s.
/// So a sum of them follows doubling up to a size and rings from there on, as libraries do.
[[nodiscard]] std::array<double, kNumAllReduceTerms> all_reduce_terms(
    const Interconnect& interconnect, const Topology& topology, double bytes);

/// Likewise of adding up partial sums, for which a device reads and writes `bytes`: 1; the bytes at
/// kHostMemoryGbPerS; those above each size, for which caches are too small; those from each memory
/// step s to 2 s.
[[nodiscard]] std::array<double, kNumPartialSumTerms> partial_sum_terms(double bytes);

/// The largest weight that there is: costs stay numbers.
inline constexpr double kMostCollectiveWeight = 1e12;

/// Weights of the terms, or of the first of them, those without memory; empty: nothing was learned.
struct CollectiveWeights {
  std::vector<double> all_reduce;
  std::vector<double> partial_sums;

  [[nodiscard]] double all_reduce_ms(const Interconnect& interconnect, const Topology& topology,
                                     double bytes) const;
  [[nodiscard]] double partial_sums_ms(double bytes) const;
};

}  // namespace neuroshard
