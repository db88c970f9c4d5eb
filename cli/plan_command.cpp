// `neuroshard plan`: finds a sharding plan and writes it.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/task_options.h"
#include "cli/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::cli {

namespace {

struct PlanOptions {
  TaskOptions task;
  PlanRequest request;
  std::string time_limit = "1s";
  std::string like;
  bool json = false;
  std::string output;
};

/// Throws if an option was given that does not go with --like: it comes from the plan.
void refuse_with_like(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool goes_with_it = name == "--like" || name == "--model" || name == "--output" ||
                              name == "--json" || name == "--help";
    if (option->count() > 0 && !goes_with_it) {
      throw InputError("--like excludes " + name + ": only --model, --json and -o go with it");
    }
  }
}

PlannedTask planned(const CLI::App& command, PlanOptions& options) {
  if (!options.like.empty()) {
    refuse_with_like(command);
    const PlanDocument document = read_plan(options.like);
    refuse_output_that_is_model(options.output, recorded_models(document.model), ModelsRead::named);
    return plan_like(document, options.request.models, options.like);
  }
  options.request.options.time_limit_seconds = parse_seconds(options.time_limit, "--time-limit");
  options.request.options.stop_by_clock = command.count("--time-limit") > 0;
  return plan_task(task_of(options.task), options.request);
}

void run(const CLI::App& command, PlanOptions& options) {
  refuse_output_that_is_input(options.output, {options.task.file, options.like});
  refuse_output_that_is_model(options.output, options.request.models, ModelsRead::named_or_default);
  const PlannedTask result = planned(command, options);
  if (!options.output.empty()) write_plan(result.document, options.output);
  print_notes(result.notes);
  print_warnings(result.warnings);
  if (options.json) {
    fmt::print("{}", plan_text(result.document));
  } else {
    fmt::print("{}", planning_report(result));
    if (!options.output.empty()) fmt::print("\nwritten to {}\n", printable(options.output));
  }
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Search for the sharding plan of lowest predicted cost");
  add_task_options(*command, options->task);
  command->add_option("--like", options->like,
                      "Make this plan again: its task, options and models (.json)");
  add_models_option(*command, options->request.models,
                    "Cost model by name or file; once for computation, once for communication");
  command
      ->add_option("--algorithm", options->request.algorithm,
                   "neuroshard, beam-search (the paper's) or a baseline")
      ->capture_default_str();
  command->add_option("--time-limit", options->time_limit, kTimeLimitHelp)->capture_default_str();
  command
      ->add_option("--threads", options->request.options.num_threads,
                   "Number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(*command, options->request.options);
  command->add_option("--seed", options->request.options.seed, "Seed of everything random")
      ->check(seed())
      ->capture_default_str();
  command->add_flag("--baselines", options->request.baselines,
                    "Also plan by every baseline, for comparison");
  command->add_flag("--json", options->json, "Print the plan as JSON (docs/formats.md)");
  command->add_option("-o,--output", options->output, "Plan to write (.json)");
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace neuroshard::cli
