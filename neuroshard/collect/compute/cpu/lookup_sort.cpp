// Packing and radix sorting of lookups.
#include "neuroshard/collect/compute/cpu/lookup_sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// A digit's counters (2^11 x 4 B) stay in the first-level cache.
constexpr int kMaxDigitBits = 11;
/// Below this many keys a comparison sort is faster than clearing counters.
constexpr std::size_t kFewKeys = 96;

int bits_for(std::int64_t count) {  // values 0 .. count - 1
  return std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1))));
}

}  // namespace

KeyLayout key_layout(std::int64_t num_embeddings, std::int64_t batch_size) {
  const KeyLayout layout{bits_for(num_embeddings), bits_for(batch_size)};
  if (layout.row_bits + layout.bag_bits > 64) {
    throw InputError("num_embeddings", "num_embeddings * batch_size of at most 2^64",
                     fmt::format("{} * {}", num_embeddings, batch_size));
  }
  return layout;
}

void pack_keys(const std::int64_t* indices, const std::int64_t* offsets, std::int64_t first_bag,
               std::int64_t last_bag, int bag_bits, kernels::LookupKey* keys) {
  for (std::int64_t bag = first_bag; bag < last_bag; ++bag) {
    for (std::int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
      *keys++ = (static_cast<kernels::LookupKey>(indices[i]) << bag_bits) |
                static_cast<kernels::LookupKey>(bag);
    }
  }
}

std::span<kernels::LookupKey> sort_by_row(std::span<kernels::LookupKey> keys,
                                          std::span<kernels::LookupKey> scratch, int row_bits,
                                          int bag_bits) {
  if (keys.size() <= kFewKeys) {
    std::sort(keys.begin(), keys.end());  // within a row by bag, which is their order
    return keys;
  }
  const int passes = std::max(1, (row_bits + kMaxDigitBits - 1) / kMaxDigitBits);
  const int digit_bits = (row_bits + passes - 1) / passes;
  const kernels::LookupKey mask = (kernels::LookupKey{1} << digit_bits) - 1;
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = bag_bits + pass * digit_bits;
    std::array<std::uint32_t, std::size_t{1} << kMaxDigitBits> position{};
    for (const kernels::LookupKey key : keys) ++position[(key >> shift) & mask];
    std::uint32_t total = 0;
    for (std::size_t digit = 0; digit <= mask; ++digit) {
      total += std::exchange(position[digit], total);
    }
    for (const kernels::LookupKey key : keys) scratch[position[(key >> shift) & mask]++] = key;
    std::swap(keys, scratch);
  }
  return keys;
}

}  // namespace neuroshard
