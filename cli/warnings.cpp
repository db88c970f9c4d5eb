// Warnings on stderr.
#include "cli/warnings.h"

#include <fmt/format.h>

#include <cstdio>

#include "neuroshard/evaluate/plan_evaluation.h"

namespace neuroshard::cli {

namespace {

void warn(const std::string& model, const std::string& reason) {
  fmt::print(stderr, "neuroshard: warning: {}: {}\n", model, reason);
}

}  // namespace

void warn_of_extrapolation(const CostModels& models, const Task& task) {
  for (const std::string& reason : models.compute->outside_range(task)) {
    warn(models.compute->name(), reason);
  }
  for (const std::string& reason : models.communication->outside_range(task)) {
    warn(models.communication->name(), reason);
  }
}

void warn_of_measurement_difference(const ComputeCostModel& model) {
  const std::string difference = measurement_difference(model);
  if (!difference.empty()) warn(model.name(), "measured on " + difference);
}

}  // namespace neuroshard::cli
