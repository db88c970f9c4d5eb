// Batches that are hard to divide among a GPU's threads.
#pragma once

#include <vector>

#include "tests/collect/operator_fixture.h"

namespace neuroshard::testing_operator {

/// Adds a batch whose bags have the given lengths and draw from `num_hot` rows only.
inline void add_bags(Fixture& fixture, const std::vector<std::int64_t>& lengths,
                     std::int64_t num_hot, Random& random) {
  IndexBatch batch;
  batch.offsets.push_back(0);
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i) {
      batch.indices.push_back(random.integer(0, num_hot - 1));
    }
    batch.offsets.push_back(std::ssize(batch.indices));
  }
  fixture.batches.push_back(std::move(batch));
}

/// Empty bags; all lookups in one bag, at the start, in the middle, at the end; every other bag
/// long: with one hot row and with many rows.
inline Fixture adversarial_fixture(DataType type, std::int64_t columns, Random& random) {
  Fixture fixture;
  fixture.batch_size = 40;
  const auto one_long = [](std::size_t at) {
    std::vector<std::int64_t> lengths(40, 0);
    lengths[at] = 2500;
    return lengths;
  };
  std::vector<std::int64_t> alternating(40, 1);
  for (std::size_t b = 0; b < 40; b += 2) alternating[b] = 190;
  const std::vector<std::int64_t> empty(40, 0);
  for (const auto& lengths : {empty, one_long(0), one_long(17), one_long(39), alternating}) {
    for (const std::int64_t hot : {1, 3, 200}) {
      fixture.add_table(200, columns, type, random);
      add_bags(fixture, lengths, hot, random);
    }
  }
  return fixture;
}

}  // namespace neuroshard::testing_operator
