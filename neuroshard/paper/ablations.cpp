// The ablations, and the planners of a comparison by name.
#include "neuroshard/paper/ablations.h"

#include <algorithm>
#include <utility>

#include "neuroshard/baselines/baselines.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/neuroshard_planner.h"

namespace neuroshard {

namespace {

std::unique_ptr<Planner> find_planner_or_ablation(std::string_view name) {
  std::vector<std::unique_ptr<Planner>> planners = make_planners();
  for (std::unique_ptr<Planner>& ablation : make_ablations()) {
    const bool is_known = std::any_of(
        planners.begin(), planners.end(),
        [&](const std::unique_ptr<Planner>& other) { return other->name() == ablation->name(); });
    if (!is_known) planners.push_back(std::move(ablation));
  }
  return take_by_name(std::move(planners), name);
}

/// The thorough schedule, with chains of one kind.
LocalSearchOptions with_chains(ChainKind kind) {
  LocalSearchOptions options;
  for (ChainKind& chain : options.chains) chain = kind;
  return options;
}

}  // namespace

std::vector<std::unique_ptr<Planner>> make_ablations() {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(std::make_unique<NeuroShardPlanner>());
  NeuroShardOptions options;
  options.name = "without-beam";
  options.beam.num_levels = 0;
  planners.push_back(std::make_unique<NeuroShardPlanner>(options));
  options = {};
  options.name = "without-grid";
  options.beam.greedy.num_limits = 1;
  planners.push_back(std::make_unique<NeuroShardPlanner>(options));
  options = {};
  options.name = "without-cache";
  options.beam.greedy.take_over = false;
  planners.push_back(std::make_unique<NeuroShardPlanner>(options));
  options = {};
  options.name = "brief-improvement";
  options.improvement = local_search_options(ImprovementSchedule::brief);
  planners.push_back(std::make_unique<NeuroShardPlanner>(options));
  options = {};
  options.name = "annealing-only";
  options.improvement = with_chains(ChainKind::annealing);
  planners.push_back(std::make_unique<NeuroShardPlanner>(options));
  options = {};
  options.name = "neighbourhoods-only";
  options.improvement = with_chains(ChainKind::large_neighbourhood);
  planners.push_back(std::make_unique<NeuroShardPlanner>(options));
  planners.push_back(std::make_unique<BeamSearchPlanner>());
  return planners;
}

std::vector<std::unique_ptr<Planner>> find_planners(const std::vector<std::string>& names) {
  if (names.size() == 1 && names[0] == "all") return make_planners();
  if (names.size() == 1 && names[0] == "ablation") return make_ablations();
  std::vector<std::unique_ptr<Planner>> planners;
  for (const std::string& name : names) planners.push_back(find_planner_or_ablation(name));
  return planners;
}

}  // namespace neuroshard
