// Files of computation models that know small tables alone, or wide pieces alone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "neuroshard/cost/compute/compute_model_io.h"
#include "tests/cost/arbitrary_network.h"

namespace neuroshard::testing_networks {

/// Of one random network, "trained on" tables of 10 to `max_embeddings` rows.
inline void write_narrow_model(const std::string& path, std::int64_t max_embeddings) {
  ComputeModelInfo info = wide_info("narrow");
  info.range.max_embeddings = max_embeddings;
  write_compute_model(
      NeuralComputeModel(random_network(ComputeArchitecture::bounded_loads, 1), std::move(info)),
      path);
}

/// Likewise, "trained on" pieces of at least `min_columns`.
inline void write_wide_pieces_model(const std::string& path, std::int64_t min_columns) {
  ComputeModelInfo info = wide_info("wide pieces");
  info.range.min_columns = min_columns;
  write_compute_model(
      NeuralComputeModel(random_network(ComputeArchitecture::bounded_loads, 1), std::move(info)),
      path);
}

}  // namespace neuroshard::testing_networks
