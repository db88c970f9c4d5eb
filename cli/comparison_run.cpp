// Algorithms over many tasks, a group of tasks at a time.
#include "cli/comparison_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/options.h"
#include "cli/progress.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/random.h"
#include "neuroshard/core/units.h"
#include "neuroshard/evaluate/comparison_journal.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/compute_costs_io.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/paper/ablations.h"
#include "neuroshard/workload/workload_catalog.h"

namespace neuroshard::cli {

namespace {

/// Tasks whose plans are measured in turns: the more, the less time is spent on filling the caches
/// with other things between two passes; a run that is killed loses as many.
constexpr std::size_t kTasksTogether = 12;

/// Samples measured again beside each group of tasks: their median ratio is then within 1 to 2 %
/// where single samples differ by 5 %.
constexpr std::size_t kControlsPerGroup = 32;

/// The workload that the files say they were measured on.
std::string workload_of(const std::vector<std::string>& files) {
  std::string workload;
  for (const std::string& file : files) {
    const ComputeCostsHeader header = read_compute_costs(file).header;
    const Json* name = header.sampling ? header.sampling->find("workload") : nullptr;
    if (name == nullptr || name->text() == nullptr) {
      throw InputError(file + ": line 1: sampling.workload", "the name of a workload",
                       name == nullptr ? "none" : describe(*name));
    }
    if (!workload.empty() && *name->text() != workload) {
      throw InputError(file + ": line 1: sampling.workload", workload + ", as in " + files.front(),
                       describe(*name));
    }
    workload = *name->text();
  }
  return workload;
}

}  // namespace

void add_comparison_options(CLI::App& command, ComparisonRunOptions& options) {
  command
      .add_option("--algorithms", options.algorithms,
                  "Names; all; or ablation: the search without one of its parts at a time")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--model", options.models,
                     "Cost model by name or file; once for computation, once for communication");
  command.add_flag("--measure", options.measure,
                   "Also measure every plan's computation on this machine");
  command.add_option("--arena", options.arena, "With --measure: memory to take for the tables")
      ->capture_default_str();
  command.add_option("--time-limit", options.time_limit, "For improving the search's plan")
      ->capture_default_str();
  command.add_option("--threads", options.planner.num_threads, "0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(command, options.planner);
  command.add_option("--seed", options.planner.seed, "Where chance plays a part")
      ->check(seed())
      ->capture_default_str();
}

ComparisonRun::ComparisonRun(const ComparisonRunOptions& options)
    : options_(options), planner_(options.planner), planners_(find_planners(options.algorithms)) {
  planner_.time_limit_seconds = parse_seconds(options.time_limit, "--time-limit");
  if (!options.measure) {
    if (!options.controls.empty()) {
      throw InputError("--controls", "--measure with it", "no --measure");
    }
    return;
  }
  if (!options.controls.empty()) {
    control_tables_ = find_workload(workload_of(options.controls), 0);
    controls_.emplace(options.controls, control_tables_.tables);
  }
  BackendOptions measuring = options.measuring;
  measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  measuring_ = chosen_backend(measuring, 1);
}

ComputeBackend* ComparisonRun::backend() {
  if (measuring_ && !backend_) backend_ = measuring_->make();
  return backend_.get();
}

std::vector<SpeedControl> ComparisonRun::controls(const Task& task, std::size_t group) const {
  if (!controls_) return {};
  std::vector<SpeedControl> drawn =
      controls_->draw(task.batch_size, task.optimizer, kControlsPerGroup,
                      Random::for_stream(mix64(planner_.seed), group));
  if (drawn.empty()) {
    throw InputError("--controls",
                     fmt::format("samples of batch size {}, optimizer {} and tables of {}",
                                 task.batch_size, to_string(task.optimizer), control_tables_.name),
                     "none");
  }
  return drawn;
}

Json ComparisonRun::comparison_json(const CostModels& models,
                                    const std::vector<NamedTask>& tasks) const {
  Json::Array identities;
  for (const NamedTask& task : tasks) identities.push_back(task.identity);
  Json::Array algorithms;
  for (const std::unique_ptr<Planner>& planner : planners_) {
    algorithms.push_back(std::string(planner->name()));
  }
  Json result = Json::Object{
      {"algorithms", std::move(algorithms)},
      {"compute_model", to_json(ModelReference{models.compute->name(), models.compute_sha256})},
      {"communication_model",
       to_json(ModelReference{models.communication->name(), models.communication_sha256})},
      {"seed", planner_.seed},
      {"time_limit_seconds", planner_.time_limit_seconds},
      {"steps", planner_.steps},
      {"pessimism", planner_.pessimism},
      {"least_gain", planner_.least_gain},
      {"measured", options_.measure},
      {"tasks", std::move(identities)}};
  if (!options_.controls.empty()) {
    Json::Array controls;
    for (const std::string& file : options_.controls) controls.push_back(sha256_file(file));
    result.set("controls", std::move(controls));
  }
  if (planner_.improvement != PlannerOptions{}.improvement) {
    result.set("improvement", to_string(planner_.improvement));
  }
  if (options_.measuring.on_gpus()) result.set("backend", options_.measuring.backend);
  return result;
}

std::vector<ComparisonEntry> ComparisonRun::compare(const std::vector<NamedTask>& tasks,
                                                    const CostModels& models,
                                                    const std::string& journal_file,
                                                    const std::string& label) {
  std::optional<ComparisonJournal> journal;
  if (!journal_file.empty()) journal.emplace(journal_file, comparison_json(models, tasks));
  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::size_t> open;
  std::vector<std::vector<ComparisonEntry>> by_task(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto* done = journal ? journal->find(static_cast<std::int64_t>(i)) : nullptr;
    if (done != nullptr) {
      by_task[i] = *done;
    } else {
      open.push_back(i);
    }
  }
  const auto is_like = [&](std::size_t a, std::size_t b) {
    return tasks[a].task.batch_size == tasks[b].task.batch_size &&
           tasks[a].task.optimizer == tasks[b].task.optimizer;
  };
  std::size_t next = 0;
  while (next < open.size()) {
    const std::size_t first = next;
    std::vector<ComparisonTask> group;
    for (; next < open.size() && is_like(open[first], open[next]) &&
           group.size() < (options_.measure ? kTasksTogether : 1);
         ++next) {
      const NamedTask& task = tasks[open[next]];
      group.push_back({task.name, std::make_shared<Simulator>(task.task, models.compute,
                                                              models.communication)});
    }
    const auto results = compare_on_tasks(group, planners_, planner_, backend(),
                                          controls(tasks[open[first]].task, open[first]));
    for (std::size_t i = 0; i < results.size(); ++i) {
      by_task[open[first + i]] = results[i];
      if (journal) journal->append(static_cast<std::int64_t>(open[first + i]), results[i]);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const double left =
        elapsed.count() / static_cast<double>(next) * static_cast<double>(open.size() - next);
    line.show(fmt::format("{}{} of {} tasks, {} left", label, tasks.size() - open.size() + next,
                          tasks.size(), format_seconds(left)));
  }
  std::vector<ComparisonEntry> entries;
  for (const auto& of_task : by_task) entries.insert(entries.end(), of_task.begin(), of_task.end());
  return entries;
}

}  // namespace neuroshard::cli
