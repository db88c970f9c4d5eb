// Groups the lookups of a table piece by row: packed keys, partitioned and sorted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neuroshard/collect/compute/cpu/embedding_kernels.h"

namespace neuroshard {

/// How a row and a bag share one 64-bit key: the row above, the bag in the low `bag_bits`.
struct KeyLayout {
  int row_bits = 0;
  int bag_bits = 0;
};

/// Throws InputError if a row and a bag do not fit into 64 bits together.
[[nodiscard]] KeyLayout key_layout(std::int64_t num_embeddings, std::int64_t batch_size);

/// Writes the keys of bags [first_bag, last_bag) in order to `keys`
/// (offsets[last_bag] - offsets[first_bag] of them).
void pack_keys(const std::int64_t* indices, const std::int64_t* offsets, std::int64_t first_bag,
               std::int64_t last_bag, int bag_bits, kernels::LookupKey* keys);

/// Sorts keys by row, where only the low `row_bits` bits of the row differ among them. Keys of one
/// row keep their order (so bags stay ascending): a least-significant-digit radix sort, 8 bytes
/// read and written per key and pass. `scratch` has as many elements. Returns the sorted keys,
/// which are in either of the two.
[[nodiscard]] std::span<kernels::LookupKey> sort_by_row(std::span<kernels::LookupKey> keys,
                                                        std::span<kernels::LookupKey> scratch,
                                                        int row_bits, int bag_bits);

}  // namespace neuroshard
