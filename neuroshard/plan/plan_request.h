// The request to the planner: models, algorithm and options next to the task, and their record in a
// plan's document.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/io/json/json.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

struct PlanRequest {
  /// Cost models by name or file, at most one of each kind; for a kind that is not named the
  /// default is taken, with a warning (model_catalog.h).
  std::vector<std::string> models{};
  std::string algorithm = "neuroshard";  ///< name of a planner (planner_catalog.h)
  PlannerOptions options{};
  bool lower_bound = true;  ///< compute it too; some ten seconds for 100,000 tables
  bool baselines = false;   ///< also plan by every baseline
};

/// {"models": [...], "algorithm": ..., "options": {...}, "lower_bound": ..., "baselines": ...},
/// each of which may be absent. With a time limit among the options the clock may stop the search.
/// Throws InputError naming the place of an unknown field or value.
[[nodiscard]] PlanRequest plan_request_from_json(const JsonReader& reader);

/// The algorithm and options that a plan was made with, from its document's `search`; the models
/// are elsewhere (plan_models.h). `file` names the document in errors. Throws InputError if the
/// document does not record them, as documents of other programs and of versions before 0.1 do not.
[[nodiscard]] PlanRequest plan_request_of(const PlanDocument& document, const std::string& file);

}  // namespace neuroshard
