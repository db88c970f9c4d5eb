// What is asked of the planner beside the task, and how a plan's document records it.
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
/// each of which may be absent. Throws InputError naming the place of what it does not know.
[[nodiscard]] PlanRequest plan_request_from_json(const JsonReader& reader);

/// The algorithm and options that a plan was made with, by its document's `search`; its models are
/// not in it (plan_models.h). `file` is what errors call the document. Throws InputError if the
/// document does not say, as those of other programs and of versions before 0.1 do not.
[[nodiscard]] PlanRequest plan_request_of(const PlanDocument& document, const std::string& file);

}  // namespace neuroshard
