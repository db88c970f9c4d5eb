// The baselines by name.
#include "neuroshard/baselines/baselines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuroshard/baselines/greedy.h"
#include "neuroshard/baselines/random_placement.h"
#include "neuroshard/baselines/torchrec_like.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/suggestion.h"

namespace neuroshard {

std::vector<std::unique_ptr<Planner>> make_baselines() {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.push_back(std::make_unique<RandomBaseline>());
  planners.push_back(std::make_unique<GreedyBaseline>(greedy_size()));
  planners.push_back(std::make_unique<GreedyBaseline>(greedy_dim()));
  planners.push_back(std::make_unique<GreedyBaseline>(greedy_lookup()));
  planners.push_back(std::make_unique<GreedyBaseline>(greedy_lookup_size()));
  planners.push_back(std::make_unique<TorchRecLikePlanner>());
  return planners;
}

std::unique_ptr<Planner> take_by_name(std::vector<std::unique_ptr<Planner>> planners,
                                      std::string_view name) {
  std::vector<std::string> names;
  for (std::unique_ptr<Planner>& planner : planners) {
    if (planner->name() == name) return std::move(planner);
    names.emplace_back(planner->name());
  }
  throw InputError("algorithm", fmt::format("one of {}", fmt::join(names, ", ")),
                   fmt::format("\"{}\"{}", name, suggestion(name, names)));
}

}  // namespace neuroshard
