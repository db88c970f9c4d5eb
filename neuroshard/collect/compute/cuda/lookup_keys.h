// The keys that the backward pass sorts: one word per lookup, the row above the bag.
#pragma once

#include <cstdint>

#include "neuroshard/collect/compute/cuda/launch_plan.h"

namespace neuroshard::cuda {

using LookupKey = std::uint64_t;

/// The bag that a lookup belongs to, known to be one of first, ..., last.
NEUROSHARD_HOST_DEVICE std::int64_t bag_of_lookup(const std::int64_t* offsets, std::int64_t first,
                                                  std::int64_t last, std::int64_t lookup) {
  while (first < last) {
    const std::int64_t middle = first + (last - first) / 2;
    if (offsets[middle + 1] <= lookup) {
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
  const std::int64_t first = bag_of_lookup(table.offsets, 0, batch_size - 1, begin);
  const std::int64_t last = bag_of_lookup(table.offsets, first, batch_size - 1, end - 1);
  for (std::int64_t lookup = begin + thread; lookup < end; lookup += threads) {
    const auto row = static_cast<LookupKey>(table.first_row + table.indices[lookup]);
    const auto bag = static_cast<LookupKey>(bag_of_lookup(table.offsets, first, last, lookup));
    keys[table.first_lookup + lookup] = (row << bits.bag_bits) | bag;
  }
}

}  // namespace neuroshard::cuda
