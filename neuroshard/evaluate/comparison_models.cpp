// Models by what of a topology they are chosen by.
#include "neuroshard/evaluate/comparison_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "neuroshard/core/error.h"

namespace neuroshard {

std::vector<CostModels> models_of_tasks(const std::vector<NamedTask>& tasks,
                                        const std::vector<std::string>& names) {
  if (tasks.empty()) throw InputError("tasks", "at least one", "none");
  std::map<std::tuple<std::string, int, int>, CostModels> known;
  std::vector<CostModels> models;
  for (const NamedTask& named : tasks) {
    const Topology& topology = named.task.topology;
    const auto [entry, is_new] =
        known.try_emplace({topology.interconnect, topology.world_size, topology.local_world_size});
    if (is_new) {
      entry->second = load_cost_models(names, topology);
      if (!models.empty()) entry->second.compute = models.front().compute;
    }
    models.push_back(entry->second);
  }
  return models;
}

std::string communication_models_text(const std::vector<CostModels>& models) {
  std::vector<std::string> texts;
  for (const CostModels& of_task : models) {
    std::string text = described(*of_task.communication);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace neuroshard
