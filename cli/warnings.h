// Warnings on stderr: reasons to trust predictions or measurements less.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "neuroshard/core/table.h"
#include "neuroshard/cost/compute/compute_cost_model.h"
#include "neuroshard/cost/model_catalog.h"

namespace neuroshard::cli {

/// A line each, unless --quiet.
void print_warnings(const std::vector<std::string>& lines);
void print_notes(const std::vector<std::string>& lines);

/// With --verbose, a line each: name, file and checksum.
void print_models_used(const CostModels& models);

/// A line if the model was measured elsewhere, or of another operator, than what runs here:
/// `difference` as measurement_difference gives it before threads are pinned to cores, or
/// operator_difference.
void warn_of_measurement_difference(const ComputeCostModel& model, const std::string& difference);

/// A line if tables have several features, which are measured as one (features_not_measured).
void warn_of_features_not_measured(std::span<const Table> tables);

}  // namespace neuroshard::cli
