// Many planners on many tasks: the predicted and, on request, the measured cost of every plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neuroshard/collect/compute/compute_backend.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/evaluate/iteration.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/search/planner.h"

namespace neuroshard {

/// One planner's result on one task.
struct ComparisonEntry {
  std::string task;
  std::string algorithm;
  /// Those that its plan may have, by the planner, its options and the task; none in files of
  /// versions that knew columns alone.
  std::optional<Cuts> cuts;
  bool found = false;
  std::string reason;                 ///< why no plan, if not found
  double predicted_ms = 0.0;          ///< cost of the plan
  std::optional<double> expected_ms;  ///< of the plan when it runs (expected_cost.h)
  double wall_ms = 0.0;               ///< time it took to make
  SearchStats stats;
  std::optional<double> measured_ms;          ///< cost with measured computation
  std::optional<double> measured_compute_ms;  ///< of the device that computes longest
  std::optional<double> compute_mape;         ///< predicted against measured, over devices
  std::optional<double> drift;          ///< of the machine's speed, with controls or reference sets
  std::optional<double> less_drift_ms;  ///< as `measured_ms`, without the drift
  std::vector<std::int64_t> device_columns;  ///< per device: sum of columns, if measured
  std::vector<double> device_compute_ms;     ///< per device: computation, if measured
  /// Likewise without the drift; empty without one, and in journals of versions that had it as one
  /// number.
  std::vector<double> device_less_drift_ms{};
  PlanAdditions additions{};  ///< if measured
  /// About its plan's prediction, beyond what is said of the task, as of plan_warnings.
  std::vector<std::string> warnings{};
};

/// One planner over all tasks. Means of costs are over the tasks for which every planner found a
/// plan, so that no planner gains by failing on the hard ones; without such a task there are none.
struct ComparisonSummary {
  std::string algorithm;
  std::optional<Cuts> cuts;  ///< all those that its plans may have
  int tasks = 0;
  int solved = 0;
  int common = 0;  ///< tasks that every planner solved
  int wins = 0;    ///< tasks on which no other plan is cheaper (predicted)
  std::optional<double> mean_predicted_ms;
  double mean_wall_ms = 0.0;  ///< over all tasks
  std::optional<double> mean_measured_ms;
  std::optional<double> mean_measured_compute_ms;
  std::optional<int> measured_wins;
  /// Mean over its solved tasks of |predicted / measured - 1|.
  std::optional<double> mean_gap;
  /// The same with the measured cost without the machine's drift, over tasks measured with
  /// controls or reference sets.
  std::optional<double> mean_gap_less_drift;
  /// Both of the expected cost in place of the predicted one, over tasks that have it.
  std::optional<double> mean_expected_gap;
  std::optional<double> mean_expected_gap_less_drift;
  /// Mean ratio of the cost (measured, if it was) to that of the reference's plan for the same
  /// task, over the tasks that both solved.
  std::optional<double> mean_ratio;
  std::optional<double> worst_ratio;
};

struct ComparisonTask {
  std::string name;
  std::shared_ptr<const Simulator> simulator;
};

/// Runs every planner on every task; the entries of each task. If `backend` is null, nothing is
/// measured; else the plans of all tasks, which must agree in batch size and optimizer, are
/// measured together, alternating, with the controls or the speed reference's sets among them.
/// Plans that break a rule are a defect of the planner and throw std::logic_error.
[[nodiscard]] std::vector<std::vector<ComparisonEntry>> compare_on_tasks(
    std::span<const ComparisonTask> tasks, const std::vector<std::unique_ptr<Planner>>& planners,
    const PlannerOptions& options, ComputeBackend* backend,
    std::span<const SpeedControl> controls = {}, const SpeedReference* reference = nullptr);

/// In the order in which the algorithms first occur. `reference` is an algorithm's name; ratios are
/// left out if it is none of them.
[[nodiscard]] std::vector<ComparisonSummary> summarize(const std::vector<ComparisonEntry>& entries,
                                                       std::string_view reference = "");

}  // namespace neuroshard
