// The ablations, and the planners of a comparison by name.
#include "neuroshard/paper/ablations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "neuroshard/baselines/baselines.h"
#include "neuroshard/baselines/planner_catalog.h"
#include "neuroshard/baselines/planner_with_cuts.h"
#include "neuroshard/core/error.h"
#include "neuroshard/search/beam/beam_search.h"
#include "neuroshard/search/neuroshard_planner.h"

namespace neuroshard {

namespace {

bool has_planner(const std::vector<std::unique_ptr<Planner>>& planners, std::string_view name) {
  return std::any_of(
      planners.begin(), planners.end(),
      [&](const std::unique_ptr<Planner>& planner) { return planner->name() == name; });
}

std::unique_ptr<Planner> find_planner_or_ablation(std::string_view name) {
  std::vector<std::unique_ptr<Planner>> planners = make_planners();
  for (std::unique_ptr<Planner>& ablation : make_ablations()) {
    if (!has_planner(planners, ablation->name())) planners.push_back(std::move(ablation));
  }
  return take_by_name(std::move(planners), name);
}

std::unique_ptr<Planner> find_with_cuts(const std::string& name, std::size_t colon) {
  const auto cuts = cuts_from_string(std::string_view(name).substr(colon + 1));
  if (!cuts) {
    throw InputError(
        "algorithm",
        "none, or some of columns, rows and replicas with + between them, behind \":\"",
        fmt::format("\"{}\"", name));
  }
  return std::make_unique<PlannerWithCuts>(find_planner_or_ablation(name.substr(0, colon)), *cuts);
}

/// The planners of one word of the list.
std::vector<std::unique_ptr<Planner>> named(const std::string& name) {
  if (name == "all") return make_planners();
  if (name == "ablation") return make_ablations();
  std::vector<std::unique_ptr<Planner>> planners;
  const std::size_t colon = name.find(':');
  planners.push_back(colon == std::string::npos ? find_planner_or_ablation(name)
                                                : find_with_cuts(name, colon));
  return planners;
}

/// The thorough schedule, with chains of one kind.
LocalSearchOptions with_chains(ChainKind kind) {
  LocalSearchOptions options;
  for (ChainKind& chain : options.chains) chain = kind;
  options.chains_of_slicings = options.chains;
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
  std::vector<std::unique_ptr<Planner>> planners;
  std::set<std::string> words;
  for (const std::string& name : names) {
    std::vector<std::unique_ptr<Planner>> found = named(name);
    // One planner is called as it calls itself, in whatever order its cuts were written.
    const std::string word = found.size() > 1 ? name : std::string(found.front()->name());
    if (!words.insert(word).second) {
      throw InputError("--algorithms", "each once", fmt::format("\"{}\" again", word));
    }
    for (std::unique_ptr<Planner>& planner : found) {
      if (!has_planner(planners, planner->name())) planners.push_back(std::move(planner));
    }
  }
  return planners;
}

}  // namespace neuroshard
