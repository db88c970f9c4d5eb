// Comparison of planners.
#include "neuroshard/evaluate/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "neuroshard/core/error.h"
#include "neuroshard/cost/expected_cost.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_warnings.h"

namespace neuroshard {

namespace {

/// A planner's entry, and its plan if it found one.
struct PlannerRun {
  ComparisonEntry entry;
  ShardingPlan plan;
};

/// `of_task`: the warnings about the task's tables.
PlannerRun run_planner(const std::string& task_name, const Simulator& simulator,
                       const Planner& planner, const PlannerOptions& options,
                       std::span<const std::string> of_task) {
  using Clock = std::chrono::steady_clock;
  ComparisonEntry entry;
  entry.task = task_name;
  entry.algorithm = planner.name();
  entry.cuts = planner.cuts(options) & simulator.task().allow;
  const Clock::time_point start = Clock::now();
  const auto stop = [&] {
    entry.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  PlanningResult result;
  try {
    result = planner.plan(simulator, options);
    stop();
  } catch (const InfeasibleError& error) {
    stop();
    entry.reason = error.what();
    return {std::move(entry), {}};
  }
  const std::vector<std::string> found = violations(simulator.task(), result.plan);
  if (!found.empty()) {
    throw std::logic_error(
        fmt::format("{}: invalid plan by {}: {}", task_name, planner.name(), found.front()));
  }
  entry.found = true;
  entry.stats = result.stats;
  entry.predicted_ms = result.predicted.cost_ms;
  entry.expected_ms = expected_cost_ms(simulator.compute(), result.predicted);
  entry.warnings = plan_warnings(simulator, result.plan, result.predicted,
                                 simulator.member_ranges(result.plan), of_task);
  return {std::move(entry), std::move(result.plan)};
}

void add_measured(const PlanEvaluation& evaluation, ComparisonEntry& entry) {
  entry.measured_ms = evaluation.measured.cost_ms;
  entry.compute_mape = evaluation.compute_mape;
  entry.drift = evaluation.drift;
  if (evaluation.less_drift) {
    entry.less_drift_ms = evaluation.less_drift->cost_ms;
    for (const DeviceCost& device : evaluation.less_drift->devices) {
      entry.device_less_drift_ms.push_back(device.compute_ms);
    }
  }
  entry.additions = evaluation.additions;
  double slowest = 0.0;
  for (const DeviceCost& device : evaluation.measured.devices) {
    slowest = std::max(slowest, device.compute_ms);
    entry.device_columns.push_back(device.num_columns);
    entry.device_compute_ms.push_back(device.compute_ms);
  }
  entry.measured_compute_ms = slowest;
}

/// Entries of one task.
using TaskEntries = std::vector<const ComparisonEntry*>;

void add_task(const TaskEntries& entries, std::vector<ComparisonSummary>& summaries) {
  const bool common = std::all_of(entries.begin(), entries.end(),
                                  [](const ComparisonEntry* entry) { return entry->found; });
  double best = std::numeric_limits<double>::infinity();
  double best_measured = best;
  for (const ComparisonEntry* entry : entries) {
    if (!entry->found) continue;
    best = std::min(best, entry->predicted_ms);
    best_measured = std::min(best_measured, entry->measured_ms.value_or(best_measured));
  }
  const auto add = [](std::optional<double>& sum, const std::optional<double>& value) {
    if (value) sum = sum.value_or(0.0) + *value;
  };
  for (const ComparisonEntry* entry : entries) {
    ComparisonSummary& summary =
        *std::find_if(summaries.begin(), summaries.end(),
                      [&](const ComparisonSummary& s) { return s.algorithm == entry->algorithm; });
    ++summary.tasks;
    if (entry->cuts) summary.cuts = summary.cuts.value_or(*entry->cuts) | *entry->cuts;
    summary.solved += entry->found ? 1 : 0;
    summary.mean_wall_ms += entry->wall_ms;
    summary.wins += entry->found && entry->predicted_ms <= best ? 1 : 0;
    if (entry->measured_ms) {
      summary.measured_wins =
          summary.measured_wins.value_or(0) + (*entry->measured_ms <= best_measured ? 1 : 0);
    }
    if (!common) continue;
    ++summary.common;
    add(summary.mean_predicted_ms, entry->predicted_ms);
    add(summary.mean_measured_ms, entry->measured_ms);
    add(summary.mean_measured_compute_ms, entry->measured_compute_ms);
  }
}

double cost_of(const ComparisonEntry& entry) {
  return entry.measured_ms.value_or(entry.predicted_ms);
}

/// Mean of |expected / actual - 1| of what is known.
class MeanGap {
 public:
  void add(const std::optional<double>& expected, const std::optional<double>& actual) {
    if (!expected || !actual) return;
    sum_ += std::abs(*expected / *actual - 1.0);
    ++count_;
  }

  [[nodiscard]] std::optional<double> mean() const {
    return count_ > 0 ? std::optional(sum_ / count_) : std::nullopt;
  }

 private:
  double sum_ = 0.0;
  int count_ = 0;
};

/// Gaps, and ratios to the reference's plans.
void add_relations(const std::map<std::string, TaskEntries>& by_task, std::string_view reference,
                   ComparisonSummary& summary) {
  MeanGap gap;
  MeanGap less_drift;
  MeanGap expected;
  MeanGap expected_less_drift;
  double ratios = 0.0;
  int compared = 0;
  for (const auto& [task, entries] : by_task) {
    const ComparisonEntry* own = nullptr;
    const ComparisonEntry* theirs = nullptr;
    for (const ComparisonEntry* entry : entries) {
      if (!entry->found) continue;
      if (entry->algorithm == summary.algorithm) own = entry;
      if (entry->algorithm == reference) theirs = entry;
    }
    if (own == nullptr) continue;
    gap.add(own->predicted_ms, own->measured_ms);
    less_drift.add(own->predicted_ms, own->less_drift_ms);
    expected.add(own->expected_ms, own->measured_ms);
    expected_less_drift.add(own->expected_ms, own->less_drift_ms);
    if (theirs == nullptr) continue;
    const double ratio = cost_of(*own) / cost_of(*theirs);
    ratios += ratio;
    ++compared;
    summary.worst_ratio = std::max(summary.worst_ratio.value_or(ratio), ratio);
  }
  summary.mean_gap = gap.mean();
  summary.mean_gap_less_drift = less_drift.mean();
  summary.mean_expected_gap = expected.mean();
  summary.mean_expected_gap_less_drift = expected_less_drift.mean();
  if (compared > 0) summary.mean_ratio = ratios / compared;
}

}  // namespace

std::vector<std::vector<ComparisonEntry>> compare_on_tasks(
    std::span<const ComparisonTask> tasks, const std::vector<std::unique_ptr<Planner>>& planners,
    const PlannerOptions& options, ComputeBackend* backend, std::span<const SpeedControl> controls,
    const SpeedReference* reference) {
  std::vector<std::vector<PlannerRun>> runs;
  std::vector<SimulatedPlan> plans;
  for (const ComparisonTask& task : tasks) {
    const Simulator& simulator = *task.simulator;
    const std::vector<std::string> warnings =
        model_warnings(simulator.compute(), simulator.task(), simulator.statistics());
    std::vector<PlannerRun>& of_task = runs.emplace_back();
    for (const std::unique_ptr<Planner>& planner : planners) {
      of_task.push_back(run_planner(task.name, simulator, *planner, options, warnings));
    }
    for (const PlannerRun& run : of_task) {
      if (run.entry.found) plans.push_back({task.simulator.get(), &run.plan});
    }
  }
  std::vector<PlanEvaluation> evaluations;
  if (backend != nullptr) {
    evaluations = evaluate_plans(plans, *backend, options.seed, {}, controls, reference);
  }
  auto evaluation = evaluations.begin();
  std::vector<std::vector<ComparisonEntry>> entries;
  for (std::vector<PlannerRun>& of_task : runs) {
    entries.emplace_back();
    for (PlannerRun& run : of_task) {
      if (backend != nullptr && run.entry.found) add_measured(*evaluation++, run.entry);
      entries.back().push_back(std::move(run.entry));
    }
  }
  return entries;
}

std::vector<ComparisonSummary> summarize(const std::vector<ComparisonEntry>& entries,
                                         std::string_view reference) {
  std::vector<ComparisonSummary> summaries;
  std::map<std::string, TaskEntries> by_task;
  for (const ComparisonEntry& entry : entries) {
    by_task[entry.task].push_back(&entry);
    const bool known =
        std::any_of(summaries.begin(), summaries.end(),
                    [&](const ComparisonSummary& s) { return s.algorithm == entry.algorithm; });
    if (!known) {
      summaries.emplace_back();
      summaries.back().algorithm = entry.algorithm;
    }
  }
  for (const auto& [task, task_entries] : by_task) add_task(task_entries, summaries);
  for (ComparisonSummary& summary : summaries) {
    summary.mean_wall_ms /= std::max(summary.tasks, 1);
    const double common = std::max(summary.common, 1);
    if (summary.mean_predicted_ms) *summary.mean_predicted_ms /= common;
    if (summary.mean_measured_ms) *summary.mean_measured_ms /= common;
    if (summary.mean_measured_compute_ms) *summary.mean_measured_compute_ms /= common;
    add_relations(by_task, reference, summary);
  }
  return summaries;
}

}  // namespace neuroshard
