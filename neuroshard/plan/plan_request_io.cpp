// Requests as JSON, and as plans record them.
#include "neuroshard/plan/plan_request_io.h"

#include "neuroshard/search/search_json.h"

namespace neuroshard {

PlanRequest plan_request_from_json(const JsonReader& reader, const PlannerOptions& defaults) {
  reader.allow_fields({"models", "algorithm", "options", "lower_bound", "baselines"});
  PlanRequest request;
  request.options = defaults;
  if (const auto models = reader.optional_field("models")) {
    for (std::size_t i = 0; i < models->array_size(); ++i) {
      request.models.push_back(models->element(i).text());
    }
  }
  if (const auto algorithm = reader.optional_field("algorithm")) {
    request.algorithm = algorithm->text();
  }
  if (const auto options = reader.optional_field("options")) {
    request.options = planner_options_from_json(*options, defaults);
    request.options.stop_by_clock = options->optional_field("time_limit").has_value();
  }
  if (const auto bound = reader.optional_field("lower_bound")) {
    request.lower_bound = bound->boolean();
  }
  if (const auto baselines = reader.optional_field("baselines")) {
    request.baselines = baselines->boolean();
  }
  return request;
}

PlanRequest plan_request_of(const PlanDocument& document, const std::string& file) {
  // The place of an error is that in the whole document.
  const Json around = Json::Object{{"search", document.search}};
  const JsonReader whole(around, file);
  const JsonReader search = whole.field("search");
  PlanRequest request;
  const JsonReader options = search.field("options");
  // Plans that record no cuts are older than the others.
  PlannerOptions of_old_plans;
  of_old_plans.cuts = kColumnsAlone;
  request.options = planner_options_from_json(options, of_old_plans);
  const JsonReader algorithm = search.field("algorithm");
  request.algorithm = algorithm.text();
  request.baselines = search.optional_field("baselines").has_value();
  request.lower_bound = search.optional_field("lower_bound_ms").has_value();
  return request;
}

}  // namespace neuroshard
