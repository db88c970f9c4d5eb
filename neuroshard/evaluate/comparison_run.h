// A comparison from its first task to its last: plans that are measured together, a journal with
// which a stopped run goes on, and samples measured earlier as controls of the machine's speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/collect/compute/speed_controls.h"
#include "neuroshard/core/task.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_journal.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/search/planner.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

/// A task of a comparison.
struct NamedTask {
  std::string name;
  Task task;
  Json identity;  ///< origin of the task, which must be the same when a run is continued
};

/// The tasks of these files, named after them and identified by name and content. Throws InputError
/// for a file that is no task, and for one that is given twice, by whatever paths.
[[nodiscard]] std::vector<NamedTask> read_named_tasks(const std::vector<std::string>& files);

/// The data type that an arena must hold in which all these tasks are measured.
[[nodiscard]] DataType arena_data_type(const std::vector<NamedTask>& tasks);

struct ComparisonRunOptions {
  PlannerOptions planner;
  /// Measures the computation of every plan; without it, costs are only predicted.
  std::optional<ComputeBackendFactory> measuring;
  std::string backend;  ///< its name in the journal; empty: this machine's CPU
  /// With `measuring`: files of computation costs measured earlier (.jsonl[.gz]) of one workload,
  /// some samples of which are measured again with each group of plans.
  std::vector<std::string> controls;
  /// With `measuring` and without controls: the reference sets that the computation model knows run
  /// next to the plans' sets, to tell the machine's speed (SpeedReference).
  bool has_reference_sets = false;
};

struct ComparisonProgress {
  std::size_t done = 0;  ///< tasks, those of an earlier run among them
  std::size_t tasks = 0;
  double seconds_left = 0.0;  ///< an estimate
};

/// Runs planners on tasks, and measures their plans on request.
class ComparisonRun {
 public:
  /// Throws InputError for controls or reference sets without `measuring`, for both, and for files
  /// of controls that cannot be read, are of several workloads, or do not name their workload.
  ComparisonRun(std::vector<std::unique_ptr<Planner>> planners, ComparisonRunOptions options);

  /// The entries of all tasks, in their order. `models` are one pair for all tasks, or one for
  /// each, whose computation model is the same. `journal` is a file of results task by task with
  /// which a run that was stopped goes on; may be empty. Of a group that was stopped between two
  /// tasks all plans are measured again, together as they would have been, and those of the missing
  /// tasks are kept: so the result does not depend on where a run was stopped, but for the times.
  /// `on_progress` is called after each group of tasks. Throws InputError for the journal of
  /// another comparison, if no control has the batch size and optimizer of a task, and as
  /// speed_reference; MachineError as the backend does.
  [[nodiscard]] std::vector<ComparisonEntry> compare(
      const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
      const std::string& journal = "",
      const std::function<void(const ComparisonProgress&)>& on_progress = {});

 private:
  /// Everything that a journal's results depend on.
  [[nodiscard]] Json comparison_json(std::span<const CostModels> models,
                                     const std::vector<NamedTask>& tasks) const;
  /// What a journal's lines must be of.
  [[nodiscard]] ComparedResults results_of(const std::vector<NamedTask>& tasks) const;
  /// How many tasks from number `first` on are planned, and measured, together. It does not depend
  /// on which of them are done already.
  [[nodiscard]] std::size_t group_size(const std::vector<NamedTask>& tasks,
                                       std::size_t first) const;
  /// The entries of the `size` tasks from number `first` on.
  [[nodiscard]] std::vector<std::vector<ComparisonEntry>> compare_group(
      const std::vector<NamedTask>& tasks, std::size_t first, std::size_t size,
      std::span<const CostModels> models, const SpeedReference* reference);
  /// Samples to measure with these tasks' plans; none if no files of them were given.
  [[nodiscard]] std::vector<SpeedControl> controls(const Task& task, std::size_t group) const;
  /// The backend takes memory, and time to settle, only once there is something to measure.
  [[nodiscard]] ComputeBackend* backend();

  std::vector<std::unique_ptr<Planner>> planners_;
  ComparisonRunOptions options_;
  Workload control_tables_;
  std::optional<SpeedControls> controls_;
  std::unique_ptr<ComputeBackend> backend_;
};

}  // namespace neuroshard
