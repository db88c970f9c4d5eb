// `neuroshard capacity`: the cost over numbers of devices and sizes of memory.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "cli/streams/warnings.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_files.h"
#include "neuroshard/io/output_files.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/report/capacity_report.h"

namespace neuroshard::cli {

namespace {

struct CapacityOptions {
  std::string task;
  std::string devices;
  std::vector<std::string> memory;
  CapacityRequest request;
  bool json = false;
  bool force = false;
  std::string output;
};

void run(CapacityOptions& options) {
  refuse_output_that_is_input(options.output, {options.task});
  refuse_output_that_is_model(options.output, options.request.models, ModelsRead::named_or_default);
  check_output(options.output, options.force);
  CapacityRequest& request = options.request;
  request.devices = parse_device_numbers(options.devices, "--devices");
  for (const std::string& size : options.memory) {
    request.memory_bytes.push_back(parse_bytes(size, "--memory"));
  }
  const Task task = read_task(options.task);
  const Capacity capacity = [&] {
    ProgressLine line;
    return plan_capacity(task, request,
                         [&](std::size_t done, std::size_t all) { line.show_planned(done, all); });
  }();
  const std::string document = to_document(capacity_json(capacity));
  write_output(options.output, document);
  print_notes(capacity.notes);
  print_warnings(capacity.warnings);
  print_models_used(capacity.models);
  if (options.json && !is_standard_output(options.output)) {
    fmt::print("{}", document);
  } else if (!is_standard_output(options.output)) {
    fmt::print("{}{}", capacity_text(capacity), written_text(options.output));
  }
  if (!capacity.smallest) throw InfeasibleError("no plan fits on any of these clusters");
}

}  // namespace

void add_capacity_command(CLI::App& app) {
  auto options = std::make_shared<CapacityOptions>();
  CLI::App* command = app.add_subcommand(
      "capacity", "Predict what a task costs on other numbers of devices, with other memory");
  add_input_option(*command, "task", options->task, "Task file (.json)")->required();
  command
      ->add_option("--devices", options->devices,
                   "Numbers of devices: 4:64 doubles from 4 on, 4,12 lists; hosts have as many as "
                   "the task's")
      ->required();
  command
      ->add_option("--memory", options->memory,
                   "Memory of each device for tables, separated by commas, such as 16GiB,40GiB")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required();
  add_models_option(*command, options->request.models,
                    "Cost model by name or file; once for computation, once for communication");
  command
      ->add_option("--threads", options->request.options.num_threads,
                   "Number of threads; 0: one per core")
      ->check(integer_between(0, kMaxThreads))
      ->capture_default_str();
  add_improvement_options(*command, options->request.options, false);
  command->add_option("--seed", options->request.options.seed, "Seed of everything random")
      ->check(seed())
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the answer as JSON (docs/formats.md)");
  add_output_option(*command, options->output, options->force,
                    "File to write the answer to (.json)");
  add_examples(*command, {"capacity task.json --devices 4:64 --memory 16GiB,40GiB"});
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
