// Requests to the planner as JSON, and as plans record them.
#pragma once

#include <string>

#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_task.h"

namespace neuroshard {

/// {"models": [...], "algorithm": ..., "options": {...}, "lower_bound": ..., "baselines": ...},
/// each of which may be absent. With a time limit among the options the clock may stop the search.
/// What is absent of the options is as in `defaults`. Throws InputError naming the place of an
/// unknown field or value.
[[nodiscard]] PlanRequest plan_request_from_json(const JsonReader& reader,
                                                 const PlannerOptions& defaults = {});

/// The algorithm and options that a plan was made with, from its document's `search`; the models
/// are elsewhere (plan_models.h). `file` names the document in errors. Throws InputError if the
/// document does not record them, as documents of other programs and of versions before 0.1 do not.
[[nodiscard]] PlanRequest plan_request_of(const PlanDocument& document, const std::string& file);

}  // namespace neuroshard
