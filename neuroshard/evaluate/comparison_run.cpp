// Planners over many tasks, a group of tasks at a time.
#include "neuroshard/evaluate/comparison_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/numbers/random.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

namespace {

/// Tasks whose plans are measured together: the more, the less time is spent on flushing the caches
/// between two passes; a run that is killed loses the tasks of a group.
constexpr std::size_t kTasksTogether = 12;

/// Samples measured again with each group of tasks: their median ratio is then within 1 to 2 %
/// where single samples differ by 5 %.
constexpr std::size_t kControlsPerGroup = 32;

std::vector<ComputeCosts> read_costs(const std::vector<std::string>& files) {
  std::vector<ComputeCosts> costs;
  for (const std::string& file : files) costs.push_back(read_compute_costs(file));
  return costs;
}

/// The workload that the files name as the one measured.
std::string workload_of(const std::vector<std::string>& files,
                        const std::vector<ComputeCosts>& costs) {
  std::string workload;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string place = files[i] + ": line 1: sampling.workload";
    const std::optional<Json>& sampling = costs[i].header.sampling;
    const Json* name = sampling ? sampling->find("workload") : nullptr;
    if (name == nullptr || name->text() == nullptr) {
      throw InputError(place, "the name of a workload", name == nullptr ? "none" : describe(*name));
    }
    if (!workload.empty() && *name->text() != workload) {
      throw InputError(place, workload + ", as in " + files.front(), describe(*name));
    }
    workload = *name->text();
  }
  return workload;
}

/// The communication models of the tasks, each once.
Json::Array communication_references(std::span<const CostModels> models) {
  Json::Array references;
  for (const CostModels& of_task : models) {
    Json reference =
        to_json(ModelReference{of_task.communication->name(), of_task.communication_sha256});
    if (std::find(references.begin(), references.end(), reference) == references.end()) {
      references.push_back(std::move(reference));
    }
  }
  return references;
}

bool can_be_measured_together(const Task& a, const Task& b) {
  return a.batch_size == b.batch_size && a.optimizer == b.optimizer;
}

}  // namespace

std::vector<NamedTask> read_named_tasks(const std::vector<std::string>& files) {
  std::vector<NamedTask> tasks;
  std::map<std::string, std::string> given;  // by where a path leads
  for (const std::string& file : files) {
    const auto [first, is_new] = given.try_emplace(with_links_followed(file), file);
    if (!is_new) {
      throw InputError(file, "each task once", fmt::format("the file of {} again", first->second));
    }
    const std::string text = read_file(file);  // once: it may be a pipe
    tasks.push_back(
        {file, parse_task(text, file), Json::Object{{"file", file}, {"sha256", sha256_hex(text)}}});
  }
  return tasks;
}

DataType arena_data_type(const std::vector<NamedTask>& tasks) {
  const bool all_fp16 = std::all_of(tasks.begin(), tasks.end(), [](const NamedTask& named) {
    return arena_data_type(named.task) == DataType::fp16;
  });
  return all_fp16 ? DataType::fp16 : DataType::fp32;
}

ComparisonRun::ComparisonRun(std::vector<std::unique_ptr<Planner>> planners,
                             ComparisonRunOptions options)
    : planners_(std::move(planners)), options_(std::move(options)) {
  if (options_.has_reference_sets && !options_.measuring) {
    throw InputError("reference sets need measured plans");
  }
  if (options_.controls.empty()) return;
  if (options_.has_reference_sets) {
    throw InputError("controls and reference sets: expected one of the two, got both");
  }
  if (!options_.measuring) {
    throw InputError("controls needs measured plans");
  }
  const std::vector<ComputeCosts> costs = read_costs(options_.controls);
  control_tables_ = find_workload(workload_of(options_.controls, costs), 0);
  controls_.emplace(costs, control_tables_.tables);
}

ComputeBackend* ComparisonRun::backend() {
  if (options_.measuring && !backend_) backend_ = options_.measuring->make();
  return backend_.get();
}

std::vector<SpeedControl> ComparisonRun::controls(const Task& task, std::size_t group) const {
  if (!controls_) return {};
  std::vector<SpeedControl> drawn =
      controls_->draw(task.batch_size, task.optimizer, kControlsPerGroup,
                      Random::for_stream(mix64(options_.planner.seed), group));
  if (drawn.empty()) {
    throw InputError("controls",
                     fmt::format("samples of batch size {}, optimizer {} and tables of {}",
                                 task.batch_size, to_string(task.optimizer), control_tables_.name),
                     "none");
  }
  return drawn;
}

Json ComparisonRun::comparison_json(std::span<const CostModels> models,
                                    const std::vector<NamedTask>& tasks) const {
  Json::Array identities;
  for (const NamedTask& task : tasks) identities.push_back(task.identity);
  Json::Array algorithms;
  for (const std::unique_ptr<Planner>& planner : planners_) {
    algorithms.push_back(std::string(planner->name()));
  }
  const PlannerOptions& planner = options_.planner;
  const CostModels& first = models.front();
  Json::Array communication = communication_references(models);
  Json result = Json::Object{
      {"algorithms", std::move(algorithms)},
      {"compute_model", to_json(ModelReference{first.compute->name(), first.compute_sha256})},
      {"communication_model", communication.front()},
      {"seed", planner.seed},
      {"time_limit_seconds", planner.time_limit_seconds},
      {"steps", planner.steps},
      {"pessimism", planner.pessimism},
      {"least_gain", planner.least_gain},
      {"measured", options_.measuring.has_value()},
      {"tasks", std::move(identities)}};
  // Here and below, only where there is anything to say, so that journals of before can go on.
  if (communication.size() > 1) result.set("communication_models", std::move(communication));
  if (planner.stop_by_clock) result.set("stop_by_clock", true);
  if (!options_.controls.empty()) {
    Json::Array controls;
    for (const std::string& file : options_.controls) controls.push_back(sha256_file(file));
    result.set("controls", std::move(controls));
  }
  if (planner.improvement != PlannerOptions{}.improvement) {
    result.set("improvement", to_string(planner.improvement));
  }
  // As in journals that are older than the other cuts.
  if (planner.cuts != kColumnsAlone) result.set("cuts", to_json(planner.cuts));
  if (!options_.backend.empty()) result.set("backend", options_.backend);
  if (options_.has_reference_sets) result.set("reference_sets", true);
  return result;
}

ComparedResults ComparisonRun::results_of(const std::vector<NamedTask>& tasks) const {
  ComparedResults results;
  for (const NamedTask& task : tasks) {
    results.tasks.push_back(task.name);
    results.world_sizes.push_back(task.task.topology.world_size);
  }
  for (const std::unique_ptr<Planner>& planner : planners_) {
    results.algorithms.emplace_back(planner->name());
  }
  results.measured = options_.measuring.has_value();
  return results;
}

std::size_t ComparisonRun::group_size(const std::vector<NamedTask>& tasks,
                                      std::size_t first) const {
  const std::size_t most = options_.measuring ? kTasksTogether : 1;
  std::size_t size = 1;
  while (size < most && first + size < tasks.size() &&
         can_be_measured_together(tasks[first].task, tasks[first + size].task)) {
    ++size;
  }
  return size;
}

std::vector<std::vector<ComparisonEntry>> ComparisonRun::compare_group(
    const std::vector<NamedTask>& tasks, std::size_t first, std::size_t size,
    std::span<const CostModels> models, const SpeedReference* reference) {
  std::vector<ComparisonTask> simulated;
  for (std::size_t task = first; task < first + size; ++task) {
    const CostModels& own = models.size() == 1 ? models.front() : models[task];
    simulated.push_back({tasks[task].name, std::make_shared<Simulator>(
                                               tasks[task].task, own.compute, own.communication)});
  }
  const std::vector<SpeedControl> sets = controls(tasks[first].task, first);
  return compare_on_tasks(simulated, planners_, options_.planner, backend(), sets, reference);
}

std::vector<ComparisonEntry> ComparisonRun::compare(
    const std::vector<NamedTask>& tasks, std::span<const CostModels> models,
    const std::string& journal_file,
    const std::function<void(const ComparisonProgress&)>& on_progress) {
  std::optional<SpeedReference> reference;
  if (options_.has_reference_sets) {
    reference = speed_reference(*models.front().compute, options_.measuring->description);
  }
  std::optional<ComparisonJournal> journal;
  if (!journal_file.empty()) {
    journal.emplace(journal_file, comparison_json(models, tasks), results_of(tasks));
  }
  std::vector<std::optional<std::vector<ComparisonEntry>>> by_task(tasks.size());
  std::size_t open = tasks.size();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto* done = journal ? journal->find(static_cast<std::int64_t>(i)) : nullptr;
    if (done == nullptr) continue;
    by_task[i] = *done;
    --open;
  }
  const auto start = std::chrono::steady_clock::now();
  std::size_t done_now = 0;
  for (std::size_t first = 0, size = 0; first < tasks.size(); first += size) {
    size = group_size(tasks, first);
    const auto group = std::span(by_task).subspan(first, size);
    if (std::all_of(group.begin(), group.end(), [](const auto& task) { return !!task; })) continue;
    auto results = compare_group(tasks, first, size, models, reference ? &*reference : nullptr);
    for (std::size_t i = 0; i < size; ++i) {
      if (group[i]) continue;
      if (journal) journal->append(static_cast<std::int64_t>(first + i), results[i]);
      group[i] = std::move(results[i]);
      ++done_now;
    }
    if (!on_progress) continue;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const std::size_t left = open - done_now;
    on_progress({tasks.size() - left, tasks.size(),
                 elapsed.count() / static_cast<double>(done_now) * static_cast<double>(left)});
  }
  std::vector<ComparisonEntry> entries;
  for (const auto& of_task : by_task) {
    entries.insert(entries.end(), of_task->begin(), of_task->end());
  }
  return entries;
}

}  // namespace neuroshard
