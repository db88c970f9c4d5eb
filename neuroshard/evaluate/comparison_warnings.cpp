// Warnings task by task.
#include "neuroshard/evaluate/comparison_warnings.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/plan/plan_models.h"

namespace neuroshard {

void add_warnings(const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
                  std::span<const ComparisonEntry> entries, CollectedWarnings& warnings) {
  const std::size_t plans = tasks.empty() ? 0 : entries.size() / tasks.size();
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const CostModels& own = models.size() == 1 ? models.front() : models[t];
    std::vector<std::string> lines = model_warnings(own, tasks[t].task);
    for (const ComparisonEntry& entry : entries.subspan(t * plans, plans)) {
      for (const std::string& line : entry.warnings) {
        lines.push_back(fmt::format("plan of {}: {}", entry.algorithm, line));
      }
    }
    warnings.add(tasks[t].name, lines);
  }
}

std::vector<std::string> comparison_warnings(const std::vector<NamedTask>& tasks,
                                             std::span<const CostModels> models,
                                             std::span<const ComparisonEntry> entries) {
  CollectedWarnings warnings("tasks");
  add_warnings(tasks, models, entries, warnings);
  return warnings.lines();
}

std::vector<std::string> measuring_warnings(const std::vector<NamedTask>& tasks,
                                            std::span<const CostModels> models,
                                            const BackendDescription& backend) {
  const ComputeCostModel& compute = *models.front().compute;
  std::vector<std::string> lines =
      measuring_warnings(compute, measurement_difference(compute, backend));
  CollectedWarnings of_tables("tasks");
  for (const NamedTask& named : tasks) {
    of_tables.add(named.name, measuring_warnings(compute, "", named.task.tables));
  }
  for (std::string& line : of_tables.lines()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace neuroshard
