// `neuroshard paper-table`: the main comparison of the paper, on generated tasks.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/comparison_options.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "cli/streams/warnings.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/evaluate/comparison_run.h"
#include "neuroshard/evaluate/plan_evaluation.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/paper/ablations.h"
#include "neuroshard/paper/paper_table.h"

namespace neuroshard::cli {

namespace {

struct PaperTableCommand {
  PaperTableOptions table;
  std::string memory = "4GiB";
  std::string optimizer = "sgd";
  ComparisonOptions run;
  bool json = false;
  bool force = false;
  std::string output;
};

void run(PaperTableCommand& options) {
  PaperTableOptions& table = options.table;
  table.tasks.memory_bytes = parse_bytes(options.memory, "--memory");
  table.tasks.optimizer = parse_optimizer(options.optimizer, "--optimizer");
  table.models = options.run.models;
  refuse_output_that_is_model(options.output, table.models, ModelsRead::named_or_default);
  refuse_output_that_is_input(options.output, paper_table_journals(table));
  for (const std::string& journal : paper_table_journals(table)) {
    refuse_output_that_is_model(journal, table.models, ModelsRead::named, "--folder");
  }
  check_output(options.output, options.force);
  const ComparisonRunOptions run_options = comparison_run_options(options.run);
  ComparisonRun comparison(find_planners(options.run.algorithms), run_options);
  ProgressLine line;
  PaperTableCallbacks callbacks;
  callbacks.on_progress = [&](const std::string& cell, const ComparisonProgress& progress) {
    line.show(fmt::format("{}: {}", cell, progress_text(progress)));
  };
  const bool prints_text = !options.json && !is_standard_output(options.output);
  if (prints_text) {
    callbacks.on_devices = [&](std::span<const PaperTableCell> cells) {
      wipe_progress();
      fmt::print("{}", paper_table_text(table, options.run.measure, cells));
      (void)std::fflush(stdout);  // the next table may take an hour
    };
  }
  const PaperTable found = run_paper_table(table, comparison, callbacks);
  if (run_options.measuring && found.compute) {
    print_warnings(measuring_warnings(
        *found.compute,
        measurement_difference(*found.compute, run_options.measuring->description)));
  }
  print_warnings(found.warnings);
  const std::string document = to_document(paper_table_json(found));
  if (options.json && !is_standard_output(options.output)) fmt::print("{}", document);
  write_output(options.output, document);
}

}  // namespace

void add_paper_table_command(CLI::App& app) {
  auto options = std::make_shared<PaperTableCommand>();
  options->run.planner.cuts = kColumnsAlone;  // the paper's
  CLI::App* command = app.add_subcommand(
      "paper-table", "The paper's main comparison: all algorithms, by devices and dimension");
  command
      ->add_option("--folder", options->table.folder,
                   "Folder of results task by task: a run that was stopped goes on")
      ->required();
  command
      ->add_option("--count", options->table.count,
                   "Tasks for each dimension and number of devices")
      ->check(integer_between(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--devices", options->table.devices,
                   "Numbers of devices, separated by commas or spaces")
      ->delimiter(',')
      ->check(integer_between(1, kMaxWorldSize))
      ->capture_default_str();
  command
      ->add_option("--max-dims", options->table.max_dims,
                   "Largest dimensions, powers of two, separated by commas or spaces")
      ->delimiter(',')
      ->check(integer_between(kColumnGranularity, kMaxEmbeddingDim))
      ->capture_default_str();
  command->add_option("--workload", options->table.workload, "Tables to draw from")
      ->capture_default_str();
  command
      ->add_option("--workload-seed", options->table.workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--memory", options->memory, "Memory of each device")->capture_default_str();
  command->add_option("--batch-size", options->table.tasks.batch_size, "Samples over all devices")
      ->check(integer_between(1, kMaxBatchSize))
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "sgd or rowwise_adagrad")
      ->capture_default_str();
  command
      ->add_option("--interconnect", options->table.tasks.interconnect,
                   "Interconnect of the devices")
      ->capture_default_str();
  command->add_option("--task-seed", options->table.tasks.seed, "Seed of the tasks")
      ->check(seed())
      ->capture_default_str();
  add_comparison_options(*command, options->run);
  command->add_flag("--json", options->json, "Print the result as JSON");
  add_output_option(*command, options->output, options->force, "Result to write (.json)");
  add_examples(*command,
               {"paper-table --folder results --count 10 --algorithms beam-search,random"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
