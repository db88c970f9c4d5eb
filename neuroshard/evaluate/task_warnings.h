// The warnings about many tasks, each once: what of them lies outside of what the models were
// trained on, how many tasks that is, and the first of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison_run.h"

namespace neuroshard {

/// Collects warnings task by task. Two are of one reason if they differ in what the task has alone
/// (after ", got ") or in the table that they name.
class TaskWarnings {
 public:
  /// The warnings of one task, as of `model_warnings`; may be none.
  void add(const std::string& task, const std::vector<std::string>& warnings);

  /// A line for each reason, in the order in which they were met: the first task's own warning,
  /// and, of more than one task, that task's name and how many tasks there are.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Reason {
    std::string key;
    std::string first_warning;
    std::string first_task;
    std::size_t tasks = 0;
  };

  std::vector<Reason> reasons_;
  std::size_t tasks_ = 0;
};

/// The warnings of a comparison; `models` are one pair for all tasks, or one for each.
void add_warnings(const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
                  TaskWarnings& warnings);
[[nodiscard]] std::vector<std::string> comparison_warnings(const std::vector<NamedTask>& tasks,
                                                           std::span<const CostModels> models);

}  // namespace neuroshard
