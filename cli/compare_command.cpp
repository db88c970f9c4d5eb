// `neuroshard compare`: all algorithms on many tasks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/options/comparison_options.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "cli/streams/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/text/suggestion.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/evaluate/comparison_models.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/evaluate/comparison_warnings.h"
#include "neuroshard/evaluate/distributed/cluster_evaluation.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/io/task_files.h"
#include "neuroshard/paper/ablations.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/report/comparison_report.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::cli {

namespace {

struct CompareOptions {
  std::vector<std::string> tasks;
  ComparisonOptions run;
  ComparisonSetting setting{.reference = "beam-search", .platform = ""};
  const CLI::Option* given_reference = nullptr;
  bool json = false;
  bool force = false;
  std::string journal;
  std::string output;
};

/// The files of --controls. Those with a comma in their name are there by that name.
std::vector<std::string> control_files(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    std::error_code unknown;
    if (std::filesystem::exists(word, unknown)) {
      files.push_back(word);
    } else {
      for (std::string& file : CLI::detail::split(word, ',')) files.push_back(std::move(file));
    }
  }
  return files;
}

/// Of the outputs, the journal is also read.
void refuse_outputs_that_are_inputs(const CompareOptions& options,
                                    const std::vector<std::string>& task_files) {
  for (const auto& inputs : {task_files, options.run.controls, {options.setting.platform}}) {
    refuse_output_that_is_input(options.journal, inputs, "--journal");
    refuse_output_that_is_input(options.output, inputs);
  }
  refuse_output_that_is_model(options.journal, options.run.models, ModelsRead::named_or_default,
                              "--journal");
  refuse_output_that_is_model(options.output, options.run.models, ModelsRead::named_or_default);
  refuse_output_that_is_input(options.output, {options.journal});
}

/// A journal is of the models too: the first task's, and by their tasks those that are others.
void identify_models(const std::vector<CostModels>& models, std::vector<NamedTask>& tasks) {
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const CostModels& own = models[t];
    if (own.communication->name() == models.front().communication->name()) continue;
    tasks[t].identity.set("communication_model", to_json(ModelReference{own.communication->name(),
                                                                        own.communication_sha256}));
  }
}

/// The default stands for no ratios where it is not compared; a name that is given must be.
void require_reference(const CompareOptions& options,
                       const std::vector<std::unique_ptr<Planner>>& planners) {
  if (options.given_reference->count() == 0) return;
  const std::string& reference = options.setting.reference;
  std::vector<std::string> names;
  for (const std::unique_ptr<Planner>& planner : planners) names.emplace_back(planner->name());
  if (std::find(names.begin(), names.end(), reference) != names.end()) return;
  throw InputError("--relative-to",
                   fmt::format("an algorithm that is compared ({})", fmt::join(names, ", ")),
                   in_quotes(reference) + suggestion(reference, names));
}

/// Of the cuts that any algorithm's plans may have, by any of the models.
std::vector<std::string> unlearned_costs(const std::vector<CostModels>& models,
                                         const std::vector<ComparisonSummary>& summaries) {
  Cuts cuts = kColumnsAlone;
  for (const ComparisonSummary& summary : summaries) {
    if (summary.cuts) cuts = cuts | *summary.cuts;
  }
  std::vector<std::string> lines;
  for (const CostModels& of_task : models) {
    for (std::string& line : neuroshard::unlearned_costs(*of_task.communication, cuts)) {
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

void run(CompareOptions& options) {
  options.run.controls = control_files(options.run.controls);
  const std::vector<std::string> task_files = find_task_files(options.tasks);
  refuse_outputs_that_are_inputs(options, task_files);
  check_output(options.output, options.force);
  std::vector<NamedTask> tasks = read_named_tasks(task_files);
  const std::vector<CostModels> models = models_of_tasks(tasks, options.run.models);
  identify_models(models, tasks);
  const std::string& platform = options.setting.platform;
  if (!platform.empty()) {
    if (!options.run.measure) throw InputError("--platform needs --measure");
    require_one_cluster(tasks);
    require_platform(tasks, platform);
  }
  options.run.measuring.cpu.data_type = arena_data_type(tasks);
  const ComparisonRunOptions run_options = comparison_run_options(options.run);
  std::vector<std::unique_ptr<Planner>> planners = find_planners(options.run.algorithms);
  require_reference(options, planners);
  ComparisonRun comparison(std::move(planners), run_options);
  std::vector<ComparisonEntry> entries;
  {
    ProgressLine line;
    entries = comparison.compare(
        tasks, models, options.journal,
        [&](const ComparisonProgress& progress) { line.show(progress_text(progress)); });
  }
  if (!platform.empty()) simulate_communication(tasks, platform, entries);
  std::vector<std::string>& warnings = options.setting.warnings;
  warnings = comparison_warnings(tasks, models, entries);
  if (run_options.measuring) {
    std::ranges::move(measuring_warnings(tasks, models, run_options.measuring->description),
                      std::back_inserter(warnings));
  }
  const std::vector<ComparisonSummary> summaries = summarize(entries, options.setting.reference);
  const std::string document =
      to_document(comparison_document(models, entries, summaries, options.setting));
  write_output(options.output, document);
  print_warnings(options.setting.warnings);
  if (is_standard_output(options.output)) return;
  ComparisonSetting setting = options.setting;
  setting.computation = described(*models.front().compute);
  setting.communication = communication_models_text(models);
  fmt::print("{}", options.json ? document
                                : comparison_text(entries, summaries, setting) +
                                      unlearned_text(unlearned_costs(models, summaries)));
}

}  // namespace

void add_compare_command(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Run algorithms over many tasks");
  add_input_option(*command, "tasks", options->tasks, "Task files, or folders of them")->required();
  add_comparison_options(*command, options->run);
  CLI::Option* controls = command->add_option(
      "--controls", options->run.controls,
      "With --measure: files of costs measured earlier (.jsonl), separated by commas or "
      "spaces, some of which are measured again with the plans, to show how the "
      "machine's speed has changed");
  command
      ->add_flag("--reference-sets", options->run.has_reference_sets,
                 "With --measure: also run, in every round, the reference sets that the model's "
                 "samples were measured next to, to show the gap at the speed that the model's "
                 "costs are of; needs the --arena and --threads of these samples")
      ->excludes(controls);
  add_backend_options(*command, options->run.measuring);
  command->add_option("--platform", options->setting.platform,
                      "With --measure: simulate the all-to-alls on this cluster, a preset or a "
                      "SimGrid platform file (.xml)");
  options->given_reference = command
                                 ->add_option("--relative-to", options->setting.reference,
                                              "Reference algorithm for ratios")
                                 ->capture_default_str();
  command
      ->add_option("--journal", options->journal,
                   "File of results task by task (.jsonl): a run that was stopped goes on")
      ->check(refused_dash);
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_output_option(*command, options->output, options->force, "Result to write (.json)");
  add_examples(*command, {"compare tasks --algorithms all -o results.json",
                          "compare tasks --algorithms neuroshard,greedy-size --measure "
                          "--journal journal.jsonl"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
