// Options of comparisons.
#include "cli/options/comparison_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"

namespace neuroshard::cli {

namespace {

/// Options that say how plans are measured.
constexpr std::array<std::string_view, 5> kOptionsOfMeasuring{"--arena", "--backend", "--gpus",
                                                              "--controls", "--reference-sets"};

/// Throws if an option was given that would do nothing.
void refuse_without_measure(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const auto known = std::count(kOptionsOfMeasuring.begin(), kOptionsOfMeasuring.end(), name);
    if (known > 0 && option->count() > 0) throw InputError(name + " needs --measure");
  }
}

}  // namespace

void add_comparison_options(CLI::App& command, ComparisonOptions& options) {
  options.command = &command;
  command
      .add_option("--algorithms", options.algorithms,
                  "Names; NAME:CUTS with other cuts than --cuts, such as neuroshard:columns+rows; "
                  "all; or ablation: the search without one of its parts at a time")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  add_models_option(command, options.models,
                    "Cost model by name or file; once for computation, once for communication");
  command.add_flag("--measure", options.measure,
                   "Also measure every plan's computation on this machine");
  command.add_option("--arena", options.arena, "With --measure: memory to take for the tables")
      ->capture_default_str();
  command.add_option("--time-limit", options.time_limit, kTimeLimitHelp)->capture_default_str();
  command
      .add_option("--threads", options.planner.num_threads, "Number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(command, options.planner);
  command.add_option("--seed", options.planner.seed, "Seed of everything random")
      ->check(seed())
      ->capture_default_str();
}

ComparisonRunOptions comparison_run_options(const ComparisonOptions& options) {
  ComparisonRunOptions run;
  run.planner = options.planner;
  run.planner.time_limit_seconds = parse_seconds(options.time_limit, "--time-limit");
  run.planner.stop_by_clock = was_given(*options.command, "time-limit");
  run.controls = options.controls;
  run.has_reference_sets = options.has_reference_sets;
  if (!options.measure) {
    refuse_without_measure(*options.command);
    return run;
  }
  BackendOptions measuring = options.measuring;
  if (options.has_reference_sets && measuring.on_gpus()) {
    throw InputError("--reference-sets goes with --backend cpu");
  }
  // --threads plan too: GPUs need none that measure.
  if (!measuring.on_gpus()) measuring.cpu.num_threads = options.planner.num_threads;
  measuring.cpu.arena_bytes = parse_bytes(options.arena, "--arena");
  run.measuring = chosen_backend(measuring, 1);
  if (measuring.on_gpus()) run.backend = measuring.backend;
  return run;
}

std::string progress_text(const ComparisonProgress& progress) {
  return fmt::format("{} of {} tasks, {} left", progress.done, progress.tasks,
                     format_seconds(progress.seconds_left));
}

}  // namespace neuroshard::cli
