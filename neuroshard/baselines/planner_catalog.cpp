// All planners by name.
#include "neuroshard/baselines/planner_catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuroshard/baselines/baselines.h"
#include "neuroshard/core/error.h"
#include "neuroshard/search/beam_search.h"

namespace neuroshard {

std::vector<std::unique_ptr<Planner>> make_planners() {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(std::make_unique<BeamSearchPlanner>());
  for (std::unique_ptr<Planner>& baseline : make_baselines()) {
    planners.push_back(std::move(baseline));
  }
  return planners;
}

std::unique_ptr<Planner> find_planner(std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<std::unique_ptr<Planner>> planners = make_planners();
  for (std::unique_ptr<Planner>& planner : planners) {
    if (planner->name() == name) return std::move(planner);
    names.push_back(planner->name());
  }
  throw InputError("algorithm", fmt::format("one of {}", fmt::join(names, ", ")),
                   fmt::format("\"{}\"", name));
}

}  // namespace neuroshard
