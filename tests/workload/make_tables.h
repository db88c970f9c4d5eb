// Helper: the kinds of tables that the tests need.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "neuroshard/core/table.h"

namespace neuroshard {

inline Table make_table(std::int64_t num_embeddings, double pooling_factor) {
  Table table;
  table.name = std::string("t");
  table.num_embeddings = num_embeddings;
  table.embedding_dim = 16;
  table.pooling_factor = pooling_factor;
  return table;
}

inline Table zipf_table(std::int64_t num_embeddings, double pooling_factor, double exponent) {
  Table table = make_table(num_embeddings, pooling_factor);
  table.index_distribution = IndexDistribution{.zipf_exponent = exponent, .access_classes = {}};
  return table;
}

inline Table class_table(double pooling_factor) {
  Table table = make_table(500'000, pooling_factor);
  table.index_distribution = IndexDistribution{
      .zipf_exponent = 0.0,
      .access_classes = {{1, 0.2}, {10, 0.2}, {1'000, 0.3}, {20'000, 0.1}, {400'000, 0.2}}};
  return table;
}

/// The table with its reuse at this batch size as a histogram and nothing else.
inline Table with_histogram(Table table, const ReuseHistogram& histogram) {
  table.index_distribution.reset();
  table.reuse_histogram = histogram;
  return table;
}

}  // namespace neuroshard
