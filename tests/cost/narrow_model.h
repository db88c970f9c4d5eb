// Files of computation models that know small tables alone, or wide pieces alone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "tests/cost/arbitrary_network.h"

namespace neuroshard::testing_networks {

/// Of one random network, "trained on" `range`.
inline void write_model_of_range(const std::string& path, std::string name, TrainedRange range) {
  ComputeModelInfo info = wide_info(std::move(name));
  info.range = std::move(range);
  write_compute_model(
      NeuralComputeModel(random_network(ComputeArchitecture::bounded_loads, 1), std::move(info)),
      path);
}

/// Tables of 10 to `max_embeddings` rows.
inline void write_narrow_model(const std::string& path, std::int64_t max_embeddings) {
  TrainedRange range = wide_info().range;
  range.max_embeddings = max_embeddings;
  write_model_of_range(path, "narrow", std::move(range));
}

/// Pieces of at least `min_columns`.
inline void write_wide_pieces_model(const std::string& path, std::int64_t min_columns) {
  TrainedRange range = wide_info().range;
  range.min_columns = min_columns;
  write_model_of_range(path, "wide pieces", std::move(range));
}

}  // namespace neuroshard::testing_networks
