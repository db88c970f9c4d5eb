// The input features of one piece of a table for a computation cost network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/compute_cost_model.h"

namespace neuroshard {

/// Which features; a model file names its schema and is refused by a build that lacks it.
enum class FeatureSchema {
  /// The paper's 20: rows, columns, pooling factor and the 17 bins of the reuse histogram; with
  /// batch size, optimizer and data type added, as one model serves several of each here.
  published,
  /// The above and the quantities that determine the operator's work: lookups, distinct rows,
  /// bytes.
  extended,
};

[[nodiscard]] std::string_view to_string(FeatureSchema schema);
/// Throws InputError naming `place` for a schema this build does not have.
[[nodiscard]] FeatureSchema feature_schema_from_string(std::string_view name,
                                                       const std::string& place);

/// Name of each feature, in order; its size is the number of features. Quantities that span orders
/// of magnitude are base-2 logarithms.
[[nodiscard]] const std::vector<std::string>& feature_names(FeatureSchema schema);

/// Writes the features of a piece, not yet standardised.
void shard_features(FeatureSchema schema, const TableStatistics& table, std::int64_t num_columns,
                    const OperatorSettings& settings, std::span<float> features);

}  // namespace neuroshard
