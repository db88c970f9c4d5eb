// All planners by name.
#include "neuroshard/baselines/planner_catalog.h"

#include <utility>

#include "neuroshard/baselines/baselines.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/neuroshard_planner.h"

namespace neuroshard {

std::vector<std::unique_ptr<Planner>> make_planners() {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(std::make_unique<NeuroShardPlanner>());
  planners.push_back(std::make_unique<BeamSearchPlanner>());
  for (std::unique_ptr<Planner>& baseline : make_baselines()) {
    planners.push_back(std::move(baseline));
  }
  return planners;
}

std::unique_ptr<Planner> find_planner(std::string_view name) {
  return take_by_name(make_planners(), name);
}

}  // namespace neuroshard
