// The input features of one piece of a table for a computation cost network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/cost/compute/physical_estimate.h"

namespace neuroshard {

/// Which features; a model file names its schema and is refused by a build that lacks it.
enum class FeatureSchema {
  /// The paper's 20: rows, columns, pooling factor and the 17 bins of the reuse histogram; with
  /// batch size, optimizer and data type added, as one model serves several of each here.
  published,
  /// The quantities that determine the operator's work (cost/compute/piece_work.h) and the physical
  /// estimate; these *growing* features come first. The others do not change with the number of
  /// lookups or of columns.
  work,
};

[[nodiscard]] std::string_view to_string(FeatureSchema schema);
/// Throws InputError naming `place` for a schema this build does not have.
[[nodiscard]] FeatureSchema feature_schema_from_string(std::string_view name,
                                                       const std::string& place);

/// Name of each feature, in order; its size is the number of features. Quantities that span orders
/// of magnitude are base-2 logarithms.
[[nodiscard]] const std::vector<std::string>& feature_names(FeatureSchema schema);

/// How many of them, the first ones, never fall when the batch or the pooling factor grows at the
/// same distribution, when 16 columns are added or when the columns are doubled.
[[nodiscard]] std::size_t num_growing_features(FeatureSchema schema);

/// Writes the features of a piece, not yet standardised. `estimate` is only used by
/// FeatureSchema::work.
void shard_features(FeatureSchema schema, const TableStatistics& table, std::int64_t num_columns,
                    const OperatorSettings& settings, const PhysicalEstimate& estimate,
                    std::span<float> features);

/// The natural logarithm of the piece's estimate [ms], from its features.
[[nodiscard]] double log_estimate(std::span<const float> features);

}  // namespace neuroshard
