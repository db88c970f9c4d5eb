// What comparing algorithms takes on the command line: their options, and the loop over the tasks.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/gpu_options.h"
#include "neuroshard/collect/compute/speed_controls.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard::cli {

struct ComparisonRunOptions {
  std::vector<std::string> models;
  std::vector<std::string> algorithms{"all"};
  std::string time_limit = "1s";
  PlannerOptions planner;
  bool measure = false;
  std::string arena = "4GiB";
  BackendOptions measuring;           ///< with `measure`: on what
  std::vector<std::string> controls;  ///< with `measure`: files of samples to measure again
};

void add_comparison_options(CLI::App& command, ComparisonRunOptions& options);

struct NamedTask {
  std::string name;
  Task task;
  Json identity;  ///< what a run that is continued must agree on
};

/// Runs the algorithms on tasks, with progress, and with measurements if asked for.
class ComparisonRun {
 public:
  /// Throws InputError for an unknown algorithm or a value that cannot be read.
  explicit ComparisonRun(const ComparisonRunOptions& options);

  /// `journal` is a file of results task by task with which a run that was stopped goes on; may be
  /// empty. `label` goes before the progress.
  [[nodiscard]] std::vector<ComparisonEntry> compare(const std::vector<NamedTask>& tasks,
                                                     const CostModels& models,
                                                     const std::string& journal,
                                                     const std::string& label);

  /// What plans are measured on; null if they are not.
  [[nodiscard]] const BackendDescription* measured_on() const {
    return measuring_ ? &measuring_->description : nullptr;
  }

 private:
  [[nodiscard]] Json comparison_json(const CostModels& models,
                                     const std::vector<NamedTask>& tasks) const;
  /// Samples to measure again beside these tasks' plans; none if no files of them were given.
  [[nodiscard]] std::vector<SpeedControl> controls(const Task& task, std::size_t group) const;
  /// Memory is only taken, and given time to settle, once there is something to measure.
  [[nodiscard]] ComputeBackend* backend();

  const ComparisonRunOptions& options_;
  PlannerOptions planner_;
  std::optional<ComputeBackendFactory> measuring_;
  std::vector<std::unique_ptr<Planner>> planners_;
  Workload control_tables_;
  std::optional<SpeedControls> controls_;
  std::unique_ptr<ComputeBackend> backend_;
};

}  // namespace neuroshard::cli
