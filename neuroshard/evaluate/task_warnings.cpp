// Warnings of many tasks by their reason.
#include "neuroshard/evaluate/task_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "neuroshard/plan/plan_models.h"

namespace neuroshard {

namespace {

/// What a warning has in common with others of its reason: the text before the task's own value, or
/// before the table's name.
std::string_view reason_of(std::string_view warning) {
  return warning.substr(0, std::min(warning.find(", got "), warning.find(" (\"")));
}

}  // namespace

void TaskWarnings::add(const std::string& task, const std::vector<std::string>& warnings) {
  ++tasks_;
  std::vector<std::string_view> met;
  for (const std::string& warning : warnings) {
    const std::string_view key = reason_of(warning);
    if (std::find(met.begin(), met.end(), key) != met.end()) continue;
    met.push_back(key);
    const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                    [&](const Reason& reason) { return reason.key == key; });
    if (known != reasons_.end()) {
      ++known->tasks;
    } else {
      reasons_.push_back({std::string(key), warning, task, 1});
    }
  }
}

std::vector<std::string> TaskWarnings::lines() const {
  std::vector<std::string> lines;
  for (const Reason& reason : reasons_) {
    lines.push_back(tasks_ == 1 ? reason.first_warning
                                : fmt::format("{}: {} of {} tasks, the first of them {}",
                                              reason.first_warning, reason.tasks, tasks_,
                                              reason.first_task));
  }
  return lines;
}

void add_warnings(const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
                  TaskWarnings& warnings) {
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const CostModels& own = models.size() == 1 ? models.front() : models[t];
    warnings.add(tasks[t].name, model_warnings(own, tasks[t].task));
  }
}

std::vector<std::string> comparison_warnings(const std::vector<NamedTask>& tasks,
                                             std::span<const CostModels> models) {
  TaskWarnings warnings;
  add_warnings(tasks, models, warnings);
  return warnings.lines();
}

}  // namespace neuroshard
