// `neuroshard compare`: all algorithms on many tasks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/comparison_report.h"
#include "cli/comparison_run.h"
#include "cli/evaluate_on_cluster.h"
#include "cli/options.h"
#include "cli/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_journal.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/checksum.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard::cli {

namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::vector<std::string> tasks;
  ComparisonRunOptions run;
  std::string platform;
  std::string reference = "beam-search";
  bool json = false;
  std::string journal;
  std::string output;
};

/// Task files: those given, and all .json files in the folders given, by name.
std::vector<std::string> task_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);  // what is wrong with it shows when it is read
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() == ".json") inside.push_back(entry->path());
    }
    if (error) throw InputError(path, "a readable folder", error.message());
    if (inside.empty()) throw InputError(path, "a folder with task files (.json)", "none in it");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

std::string document(const CostModels& models, const std::vector<ComparisonEntry>& entries,
                     const std::vector<ComparisonSummary>& summaries) {
  Json::Array summary_array;
  for (const ComparisonSummary& summary : summaries) summary_array.push_back(to_json(summary));
  Json::Array entry_array;
  for (const ComparisonEntry& entry : entries) entry_array.push_back(to_json(entry));
  return to_document(Json::Object{{"format", "neuroshard/comparison/1"},
                                  {"compute_model", models.compute->name()},
                                  {"communication_model", models.communication->name()},
                                  {"summary", std::move(summary_array)},
                                  {"entries", std::move(entry_array)}});
}

/// Puts simulated all-to-alls in the place of predicted ones.
void simulate_communication(const CompareOptions& options, const std::vector<std::string>& files,
                            std::vector<ComparisonEntry>& entries) {
  const Task first = read_task(files.front());
  for (const std::string& file : files) {
    const Task task = read_task(file);
    if (task.topology.world_size != first.topology.world_size ||
        task.topology.local_world_size != first.topology.local_world_size ||
        task.batch_size != first.batch_size) {
      throw InputError(file,
                       "the topology and batch size of " + files.front() +
                           ", as --platform simulates one cluster",
                       "another");
    }
  }
  struct SimulatedCost {
    IterationCase iteration;
    std::optional<double>* cost_ms;
  };
  std::vector<SimulatedCost> costs;
  for (ComparisonEntry& entry : entries) {
    if (!entry.measured_ms) continue;
    IterationCase iteration;
    iteration.columns = entry.device_columns;
    iteration.compute_ms = entry.device_compute_ms;
    costs.push_back({iteration, &entry.measured_ms});
    if (!entry.drift) continue;
    for (double& ms : iteration.compute_ms) ms /= *entry.drift;
    costs.push_back({std::move(iteration), &entry.less_drift_ms});
  }
  std::size_t given = 0;
  std::size_t done = 0;
  simulate_costs(
      first, options.platform,
      [&]() -> std::optional<IterationCase> {
        if (given == costs.size()) return std::nullopt;
        return std::move(costs[given++].iteration);
      },
      [&](double cost_ms) { *costs[done++].cost_ms = cost_ms; });
}

/// The tasks, by the names of their files, and what makes them what they are.
std::vector<NamedTask> tasks_of(const std::vector<std::string>& files) {
  std::vector<NamedTask> tasks;
  for (const std::string& file : files) {
    tasks.push_back(
        {file, read_task(file), Json::Object{{"file", file}, {"sha256", sha256_file(file)}}});
  }
  return tasks;
}

void run(CompareOptions& options) {
  if (!options.output.empty()) require_writable(options.output);
  const std::vector<std::string> files = task_files(options.tasks);
  const std::vector<NamedTask> tasks = tasks_of(files);
  const CostModels models = load_cost_models(options.run.models, tasks.front().task.topology);
  if (!options.platform.empty() && !options.run.measure) {
    throw InputError("--platform", "--measure with it", "no --measure");
  }
  ComparisonRun comparison(options.run);
  std::vector<ComparisonEntry> entries = comparison.compare(tasks, models, options.journal, "");
  if (!options.platform.empty()) simulate_communication(options, files, entries);
  const std::vector<ComparisonSummary> summaries = summarize(entries, options.reference);
  const std::string text = document(models, entries, summaries);
  if (!options.output.empty()) write_file(options.output, text);
  if (const BackendDescription* here = comparison.measured_on()) {
    warn_of_measurement_difference(*models.compute, measurement_difference(*models.compute, *here));
  }
  if (options.json) {
    fmt::print("{}", text);
  } else {
    print_comparison(entries, summaries, {options.reference, options.platform});
  }
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Run algorithms over many tasks");
  command->add_option("tasks", options->tasks, "Task files, or folders of them")->required();
  add_comparison_options(*command, options->run);
  command->add_option("--controls", options->run.controls,
                      "With --measure: files of costs measured earlier (.jsonl), some of which are "
                      "measured again beside the plans: how the machine's speed has changed");
  add_backend_options(*command, options->run.measuring);
  command->add_option("--platform", options->platform,
                      "With --measure: simulate the all-to-alls on this cluster, a preset or a "
                      "SimGrid platform file (.xml)");
  command
      ->add_option("--relative-to", options->reference,
                   "Algorithm whose costs the others' are set against")
      ->capture_default_str();
  command->add_option("--journal", options->journal,
                      "File of results task by task (.jsonl): a run that was stopped goes on");
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->add_option("-o,--output", options->output, "Result to write (.json)");
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
