// The keys that the backward pass sorts: one word per lookup, the row above the bag.
#pragma once

#include <cstdint>

#include "neuroshard/collect/compute/cuda/launch_plan.h"

namespace neuroshard::cuda {

using LookupKey = std::uint64_t;

/// The bag that a lookup belongs to, known to be one of first, ..., last: found from `guess` on in
/// steps that double.
NEUROSHARD_HOST_DEVICE std::int64_t bag_of_lookup(const std::int64_t* offsets, std::int64_t first,
                                                  std::int64_t last, std::int64_t guess,
                                                  std::int64_t lookup) {
  const auto ends_by_then = [&](std::int64_t bag) { return offsets[bag + 1] <= lookup; };
  std::int64_t step = 1;
  if (ends_by_then(guess)) {
    first = guess + 1;
    while (first + step <= last && ends_by_then(first + step - 1)) {
      first += step;
      step *= 2;
    }
    if (first + step <= last) last = first + step - 1;
  } else {
    last = guess;
    while (last - step >= first && !ends_by_then(last - step)) {
      last -= step;
      step *= 2;
    }
    if (last - step >= first) first = last - step + 1;
  }
  while (first < last) {
    const std::int64_t middle = first + (last - first) / 2;
    if (ends_by_then(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/// Writes the keys of lookups thread, thread + threads, ... of a table's block; every thread of the
/// block calls it.
NEUROSHARD_HOST_DEVICE void write_keys(const TableLayout& table, KeyBits bits,
                                       std::int64_t batch_size, std::int64_t block_of_table,
                                       int thread, int threads, LookupKey* keys) {
  const std::int64_t begin = block_of_table * kKeysPerBlock;
  const std::int64_t end =
      begin + kKeysPerBlock < table.num_lookups ? begin + kKeysPerBlock : table.num_lookups;
  if (begin >= end) return;
  const std::int64_t first = bag_of_lookup(table.offsets, 0, batch_size - 1, batch_size / 2, begin);
  const std::int64_t last = bag_of_lookup(table.offsets, first, batch_size - 1, first, end - 1);
  // Bags of one length would be found at once.
  const std::int64_t start = table.offsets[first];
  const float bags_per_lookup =
      static_cast<float>(last - first + 1) / static_cast<float>(table.offsets[last + 1] - start);
  for (std::int64_t lookup = begin + thread; lookup < end; lookup += threads) {
    const auto row = static_cast<LookupKey>(table.first_row + table.indices[lookup]);
    const auto ahead =
        static_cast<std::int64_t>(static_cast<float>(lookup - start) * bags_per_lookup);
    const std::int64_t guess = first + ahead < last ? first + ahead : last;
    const auto bag =
        static_cast<LookupKey>(bag_of_lookup(table.offsets, first, last, guess, lookup));
    keys[table.first_lookup + lookup] = (row << bits.bag_bits) | bag;
  }
}

}  // namespace neuroshard::cuda
