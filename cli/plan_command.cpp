// `neuroshard plan`: finds a sharding plan and writes it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/options/task_options.h"
#include "cli/streams/output.h"
#include "cli/streams/planning_line.h"
#include "cli/streams/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/plan_io.h"
#include "neuroshard/plan/plan_models.h"
#include "neuroshard/plan/plan_task.h"
#include "neuroshard/plan/replan_task.h"
#include "neuroshard/report/planning_report.h"

namespace neuroshard::cli {

namespace {

struct PlanOptions {
  TaskOptions task;
  PlanRequest request;
  std::string time_limit = "1s";
  std::string like;
  std::string from;
  std::string max_move;
  bool json = false;
  bool force = false;
  std::string output;
};

/// Options that say nothing about how the plan is made.
constexpr std::array<std::string_view, 8> kGoWithLike{"--like", "--model", "--output", "--force",
                                                      "--json", "--help",  "--quiet",  "--verbose"};

/// Throws if an option was given that does not go with --like: it comes from the plan.
void refuse_with_like(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool goes_with_it =
        std::find(kGoWithLike.begin(), kGoWithLike.end(), name) != kGoWithLike.end();
    if (option->count() > 0 && !goes_with_it) {
      throw InputError("--like excludes " + name +
                       ": only --model, --json, -o, --force, --quiet and --verbose go with it");
    }
  }
}

/// Options that were not given are those that the older plan was made with.
PlannerOptions options_from(const CLI::App& command, const PlanDocument& older,
                            const PlanOptions& options) {
  const PlannerOptions& given = options.request.options;
  PlannerOptions result = options_of_older(older);
  result.num_threads = given.num_threads;
  const auto take = [&](const char* name, auto PlannerOptions::*option) {
    if (was_given(command, name)) result.*option = given.*option;
  };
  take("cuts", &PlannerOptions::cuts);
  take("steps", &PlannerOptions::steps);
  take("improvement", &PlannerOptions::improvement);
  take("pessimism", &PlannerOptions::pessimism);
  take("least-gain", &PlannerOptions::least_gain);
  take("seed", &PlannerOptions::seed);
  take("time-limit", &PlannerOptions::time_limit_seconds);
  result.stop_by_clock = given.stop_by_clock;
  result.observer = given.observer;
  return result;
}

PlannedTask planned_from_older(const CLI::App& command, PlanOptions& options) {
  if (was_given(command, "algorithm")) throw InputError("--from excludes --algorithm");
  const double max_move = was_given(command, "max-move")
                              ? parse_share(options.max_move, "--max-move")
                              : kDefaultMaxMove;
  const PlanDocument older = read_plan(options.from);
  refuse_output_that_is_model(options.output, recorded_models(older.model), ModelsRead::named);
  check_output(options.output, options.force);
  PlanRequest request = options.request;
  request.options = options_from(command, older, options);
  return replan_task(task_of(options.task), older, max_move, request, options.from);
}

/// By which the planning is over, if the clock ends it.
std::optional<double> limit_of(const CLI::App& command, const PlanOptions& options) {
  if (!was_given(command, "time-limit")) return std::nullopt;
  return parse_seconds(options.time_limit, "--time-limit");
}

PlannedTask planned(const CLI::App& command, PlanOptions& options) {
  if (!options.like.empty()) {
    refuse_with_like(command);
    const PlanDocument document = read_plan(options.like);
    refuse_output_that_is_model(options.output, recorded_models(document.model), ModelsRead::named);
    // Those that it is made again by, where others have priced it since.
    if (const Json* of_search = document.search.find("model")) {
      refuse_output_that_is_model(options.output, recorded_models(*of_search), ModelsRead::named);
    }
    check_output(options.output, options.force);
    return plan_like(document, options.request.models, options.like,
                     options.request.options.observer);
  }
  if (was_given(command, "workload-seed") && options.task.workload.empty()) {
    throw InputError("--workload-seed needs --workload");
  }
  options.request.options.time_limit_seconds = parse_seconds(options.time_limit, "--time-limit");
  options.request.options.stop_by_clock = was_given(command, "time-limit");
  if (!options.from.empty()) return planned_from_older(command, options);
  if (was_given(command, "max-move")) throw InputError("--max-move needs --from");
  check_output(options.output, options.force);
  return plan_task(task_of(options.task), options.request);
}

void run(const CLI::App& command, PlanOptions& options) {
  refuse_output_that_is_input(options.output, {options.task.file, options.like, options.from});
  refuse_output_that_is_model(options.output, options.request.models, ModelsRead::named_or_default);
  const PlannedTask result = [&] {
    const PlanningLine line(limit_of(command, options), options.request.options);
    return planned(command, options);
  }();
  const std::string text =
      options.json || !options.output.empty() ? plan_text(result.document) : "";
  write_output(options.output, text);
  print_notes(result.notes);
  print_warnings(result.warnings);
  print_models_used(result.models);
  if (is_standard_output(options.output)) return;
  if (options.json) {
    fmt::print("{}", text);
  } else {
    fmt::print("{}{}", planning_report(result), written_text(options.output));
  }
}

}  // namespace

void add_plan_command(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Search for the sharding plan of lowest predicted cost");
  add_task_options(*command, options->task);
  add_input_option(*command, "--like", options->like,
                   "Make this plan again: its task, options and models (.json)");
  add_input_option(*command, "--from", options->from,
                   "Plan from this older plan (.json), of which little moves; models and search "
                   "options are its own unless they are given");
  command->add_option(
      "--max-move", options->max_move,
      "With --from: the most that may move of the bytes that the older plan placed, "
      "such as 10% (default) or 0.1");
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
  add_output_option(*command, options->output, options->force, "Plan to write (.json)");
  add_examples(*command,
               {"plan task.json -o plan.json",
                "plan --workload mlperf-dlrm-dcnv2 --devices 8 --memory 16GiB -o plan.json",
                "plan task.json --from plan.json --max-move 10% -o next.json"});
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace neuroshard::cli
