// Warnings on stderr.
#include "cli/warnings.h"

#include <fmt/format.h>

#include <cstdio>

namespace neuroshard::cli {

namespace {

void warn(const std::string& model, const std::string& reason) {
  fmt::print(stderr, "neuroshard: warning: {}: {}\n", model, reason);
}

}  // namespace

void print_warnings(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print(stderr, "neuroshard: warning: {}\n", line);
}

void warn_of_measurement_difference(const ComputeCostModel& model, const std::string& difference) {
  if (!difference.empty()) warn(model.name(), "measured on " + difference);
}

void warn_of_other_models(const PlanDocument& document, const CostModels& models) {
  const auto compare = [&](const char* kind, const std::string& name, const std::string& sha256) {
    const Json* reference = document.model.find(kind);
    const Json* made_with = reference == nullptr ? nullptr : reference->find("sha256");
    const std::string* expected = made_with == nullptr ? nullptr : made_with->text();
    if (expected != nullptr && !expected->empty() && *expected != sha256) {
      warn(name, "not the model of that name that the plan was made with; --model gives another");
    }
  };
  compare("compute", models.compute->name(), models.compute_sha256);
  compare("communication", models.communication->name(), models.communication_sha256);
}

}  // namespace neuroshard::cli
