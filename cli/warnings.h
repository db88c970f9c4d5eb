// Warnings on stderr: what makes predictions or measurements say less than they seem to.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/core/task.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/io/plan_io.h"

namespace neuroshard::cli {

/// A line each.
void print_warnings(const std::vector<std::string>& lines);

/// A line if the model was measured elsewhere, or of another operator, than what runs here:
/// `difference` as measurement_difference gives it before threads are pinned to cores.
void warn_of_measurement_difference(const ComputeCostModel& model, const std::string& difference);

/// A line for each model that is not the one of that name that the plan was made with.
void warn_of_other_models(const PlanDocument& document, const CostModels& models);

}  // namespace neuroshard::cli
