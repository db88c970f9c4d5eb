// `neuroshard workload`: lists and shows workloads, and generates random tasks from them.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options/conventions.h"
#include "cli/options/options.h"
#include "cli/options/task_options.h"
#include "cli/streams/output.h"
#include "cli/streams/progress.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/task_files.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/report/workload_report.h"
#include "neuroshard/workload/generate/task_generator.h"
#include "neuroshard/workload/workload.h"
#include "neuroshard/workload/workload_json.h"

namespace neuroshard::cli {

namespace {

void list(bool json) {
  fmt::print("{}", json ? to_document(workloads_json()) : workloads_table(list_workloads()));
}

struct ShowOptions {
  std::string name;
  std::uint64_t seed = 0;
  std::int64_t batch_size = 0;
  bool tables = false;
  bool json = false;
};

void show(const ShowOptions& options) {
  const Workload workload = find_workload(options.name, options.seed);
  const std::int64_t batch_size = options.batch_size > 0 ? options.batch_size : workload.batch_size;
  if (options.json) {
    fmt::print("{}", to_document(workload_json(workload, batch_size)));
    return;
  }
  fmt::print("{}", workload_text(workload, batch_size));
  if (options.tables) fmt::print("\n{}", workload_tables_table(workload));
}

struct TasksOptions {
  std::string name;
  std::uint64_t workload_seed = 0;
  int count = 100;
  std::string tables;
  std::string memory = "4GiB";
  std::string fill;
  std::string optimizer;
  TaskGeneratorOptions generator;
  std::string output;
};

void generate(TasksOptions& options) {
  TaskGeneratorOptions& generator = options.generator;
  const Workload workload = find_workload(options.name, options.workload_seed);
  if (options.tables.empty()) {
    set_default_tables(generator, workload);
  } else {
    std::tie(generator.min_tables, generator.max_tables) = parse_range(options.tables, "--tables");
  }
  generator.memory_bytes = parse_bytes(options.memory, "--memory");
  if (!options.fill.empty()) {
    std::tie(generator.min_fill, generator.max_fill) = parse_shares(options.fill, "--fill");
  }
  generator.optimizer = options.optimizer.empty()
                            ? workload.optimizer
                            : parse_optimizer(options.optimizer, "--optimizer");
  const std::int64_t count = options.count;
  std::int64_t made = 0;  // each twice, the second time to write it
  {
    ProgressLine line;
    write_task_files(
        count,
        [&](std::int64_t number) {
          line.show(fmt::format("{} of {} {}", made % count, format_count(count, "task"),
                                made < count ? "tried" : "written"));
          ++made;
          return generate_task(workload, generator, static_cast<std::uint64_t>(number));
        },
        options.output);
  }
  fmt::print("{} written to {}\n", format_count(options.count, "task"), printable(options.output));
}

void add_tasks(CLI::App& workload) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App* command = workload.add_subcommand("tasks", "Generate random sharding tasks");
  command->add_option("name", options->name, "Workload that the tables are drawn from")->required();
  command->add_option("--workload-seed", options->workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--count", options->count, "Tasks to write")
      ->capture_default_str()
      ->check(integer_between(1, 10'000'000));
  command->add_option("--tables", options->tables,
                      "Tables of a task, as MIN:MAX; default 10:60, or all where there are fewer");
  command->add_option("--max-dim", options->generator.max_dim, "Largest dimension, a power of two")
      ->check(integer_between(kColumnGranularity, kMaxEmbeddingDim))
      ->capture_default_str();
  command->add_option("--devices", options->generator.num_devices, "Devices of a task")
      ->check(integer_between(1, kMaxWorldSize))
      ->capture_default_str();
  command->add_option("--memory", options->memory, "Memory of each device")->capture_default_str();
  command->add_option("--fill", options->fill,
                      "Share of all memory that the tables take, as MIN:MAX: sets each task's "
                      "memory, below --memory");
  command
      ->add_option("--local-devices", options->generator.local_devices,
                   "Devices of a host; 0: all devices on one")
      ->check(integer_between(0, kMaxWorldSize))
      ->capture_default_str();
  command->add_option("--interconnect", options->generator.interconnect,
                      "Name of the topology's interconnect");
  command
      ->add_option("--max-pooling-factor", options->generator.max_pooling_factor,
                   "Only tables of at most this pooling factor; 0: any")
      ->check(number_between(0.0, kMaxPoolingFactor))
      ->capture_default_str();
  command
      ->add_option("--batch-size", options->generator.batch_size,
                   "Samples over all devices; 0: the workload's")
      ->check(integer_between(0, kMaxBatchSize))
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer,
                      "sgd or rowwise_adagrad; default the workload's");
  command->add_option("--seed", options->generator.seed, "Seed of the tasks")
      ->check(seed())
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Folder to write to")
      ->check(refused_dash)
      ->required();
  add_examples(*command, {"workload tasks dlrm-2021 --count 100 --devices 4 --seed 1 -o tasks",
                          "workload tasks dlrm-2022 --devices 8 --fill 0.9:0.98 -o tight-tasks"});
  command->callback([options] { generate(*options); });
}

struct ExportOptions {
  TaskOptions task;  ///< `workload` and the settings
  bool force = false;
  std::string output;
};

void export_task(ExportOptions& options) {
  if (options.task.devices == 0) options.task.devices = 8;
  if (options.task.memory.empty()) options.task.memory = "80GiB";
  const Task task = task_of(options.task);
  check_output(options.output, options.force);
  write_output(options.output, task_text(task));
  if (is_standard_output(options.output)) return;
  fmt::print("{} on {} written to {}\n",
             format_count(static_cast<std::int64_t>(task.tables.size()), "table"),
             format_count(task.topology.world_size, "device"), printable(options.output));
}

void add_export(CLI::App& workload) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = workload.add_subcommand(
      "export",
      "Write all tables of a workload as a task, on 8 devices of 80GiB unless told "
      "otherwise");
  command->add_option("name", options->task.workload, "Workload")->required();
  command
      ->add_option("--workload-seed", options->task.workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  add_task_settings(*command, options->task);
  add_output_option(*command, options->output, options->force, "Task to write (.json)")->required();
  add_examples(*command, {"workload export mlperf-dlrm-dcnv2 --devices 8 -o task.json",
                          "workload export criteo-kaggle -o - | neuroshard plan -"});
  command->callback([options] { export_task(*options); });
}

}  // namespace

void add_workload_command(CLI::App& app) {
  CLI::App* workload = app.add_subcommand("workload", "Tables of recommendation models");
  workload->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  CLI::App* listed = workload->add_subcommand("list", "List all workloads");
  listed->add_flag("--json", *json, "Print the result as JSON");
  add_examples(*listed, {"workload list", "workload list --json"});
  listed->callback([json] { list(*json); });

  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = workload->add_subcommand("show", "Show a workload's tables and statistics");
  command->add_option("name", options->name, "Workload")->required();
  command->add_option("--workload-seed,--seed", options->seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command
      ->add_option("--batch-size", options->batch_size,
                   "Samples over all devices; 0: the workload's")
      ->check(integer_between(0, kMaxBatchSize))
      ->capture_default_str();
  command->add_flag("--tables", options->tables, "Also list every table");
  command->add_flag("--json", options->json, "Print the result, with every table, as JSON");
  add_examples(*command, {"workload show mlperf-dlrm-dcnv2 --tables"});
  command->callback([options] { show(*options); });

  add_export(*workload);
  add_tasks(*workload);
}

}  // namespace neuroshard::cli
