// Sums sample by sample, so that a sample's sums stay in the first-level cache.
#include "neuroshard/collect/communication/partial_sums.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace neuroshard {

namespace {

/// Samples that a thread is given together.
constexpr std::int64_t kBlock = 256;

void add_sample(const PartialSums& sums, std::int64_t sample) {
  float* __restrict sum = sums.sum.values + sample * sums.sum.stride;
  const auto part = [&](std::size_t i) {
    return sums.parts[i].values + sample * sums.parts[i].stride;
  };
  if (sums.parts.size() == 1) {
    std::copy_n(part(0), sums.num_columns, sum);
    return;
  }
  const float* __restrict first = part(0);
  const float* __restrict second = part(1);
  for (std::int64_t c = 0; c < sums.num_columns; ++c) sum[c] = first[c] + second[c];
  for (std::size_t i = 2; i < sums.parts.size(); ++i) {
    const float* __restrict next = part(i);
    for (std::int64_t c = 0; c < sums.num_columns; ++c) sum[c] += next[c];
  }
}

template <typename Value>
bool continues(const SampleColumns<Value>& columns, const SampleColumns<Value>& before,
               std::int64_t num_columns) {
  return columns.stride == before.stride && columns.values == before.values + num_columns;
}

bool continues(const PartialSums& sums, const PartialSums& before) {
  if (sums.parts.size() != before.parts.size() ||
      !continues(sums.sum, before.sum, before.num_columns)) {
    return false;
  }
  for (std::size_t i = 0; i < sums.parts.size(); ++i) {
    if (!continues(sums.parts[i], before.parts[i], before.num_columns)) return false;
  }
  return true;
}

}  // namespace

std::vector<PartialSums> joined(std::vector<PartialSums> sums) {
  std::vector<PartialSums> result;
  for (PartialSums& one : sums) {
    if (!result.empty() && continues(one, result.back())) {
      result.back().num_columns += one.num_columns;
    } else {
      result.push_back(std::move(one));
    }
  }
  return result;
}

void add_partial_sums(std::span<const PartialSums> sums, std::int64_t num_samples,
                      ThreadPool& pool) {
  if (sums.empty() || num_samples <= 0) return;
  const auto blocks = static_cast<std::size_t>((num_samples + kBlock - 1) / kBlock);
  pool.for_each(blocks, [&](std::size_t block, int) {
    const std::int64_t first = static_cast<std::int64_t>(block) * kBlock;
    const std::int64_t end = std::min(first + kBlock, num_samples);
    for (std::int64_t sample = first; sample < end; ++sample) {
      for (const PartialSums& one : sums) add_sample(one, sample);
    }
  });
}

}  // namespace neuroshard
