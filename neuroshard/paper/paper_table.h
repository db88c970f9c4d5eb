// The paper's main comparison: all algorithms on generated tasks, by number of devices and largest
// dimension.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/workload/generate/task_generator.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

struct PaperTableOptions {
  std::string workload = "dlrm-2021";  ///< tables to draw from
  std::uint64_t workload_seed = 0;
  std::vector<int> devices{4, 8};
  std::vector<std::int64_t> max_dims{4, 8, 16, 32, 64, 128};  ///< largest dimensions
  int count = 100;                                            ///< tasks of a cell
  /// Options that the tasks of all cells share; tables, devices and largest dimension differ
  /// between cells.
  TaskGeneratorOptions tasks{.interconnect = "pcie4", .batch_size = 4096};
  std::vector<std::string> models;  ///< as of load_cost_models
  std::string folder;               ///< of results task by task: a run that was stopped goes on
};

/// One algorithm after the other on the tasks of one number of devices and one largest dimension.
struct PaperTableCell {
  int devices = 0;
  std::int64_t max_dim = 0;
  std::vector<ComparisonSummary> summaries;
  std::string computation{};    ///< `described` of the model
  std::string communication{};  ///< likewise
  bool communication_is_simulated = false;
  int min_tables = 0;  ///< of a task, as far as the workload has them
  int max_tables = 0;
};

struct PaperTable {
  std::vector<PaperTableCell> cells{};  ///< by devices and then by dimension
  /// A line each: what of the cells' tasks lies outside of what the models were trained on.
  std::vector<std::string> warnings{};
  std::shared_ptr<const ComputeCostModel> compute{};  ///< which all cells have; null without any
};

struct PaperTableCallbacks {
  /// `cell` names the cell that is being computed.
  std::function<void(const std::string& cell, const ComparisonProgress&)> on_progress;
  /// After all cells of a number of devices.
  std::function<void(std::span<const PaperTableCell>)> on_devices;
};

/// The tasks of a cell, drawn as the paper draws them: 2.5 to 15 tables per device, as far as the
/// workload has them.
[[nodiscard]] std::vector<NamedTask> paper_tasks(const PaperTableOptions& options,
                                                 const Workload& workload, int devices,
                                                 std::int64_t max_dim);

/// The files in `folder` that are written, and read by a run that goes on.
[[nodiscard]] std::vector<std::string> paper_table_journals(const PaperTableOptions& options);

/// The whole table. Throws InputError for a folder that cannot be written, and as `comparison`
/// does.
[[nodiscard]] PaperTable run_paper_table(const PaperTableOptions& options,
                                         ComparisonRun& comparison,
                                         const PaperTableCallbacks& callbacks);

/// Two tables of the cells of one number of devices, one line per algorithm, one column per largest
/// dimension: mean costs, with measured computation if `is_measured`, and shares of tasks solved.
[[nodiscard]] std::string paper_table_text(const PaperTableOptions& options, bool is_measured,
                                           std::span<const PaperTableCell> cells);

/// "neuroshard/paper-table/1".
[[nodiscard]] Json paper_table_json(const PaperTable& table);

}  // namespace neuroshard
