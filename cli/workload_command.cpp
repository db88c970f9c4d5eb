// `neuroshard workload`: lists and shows workloads, and generates random tasks from them.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/sharding_plan.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/workload/generate/aggregate_statistics.h"
#include "neuroshard/workload/generate/task_generator.h"
#include "neuroshard/workload/workload_catalog.h"

namespace neuroshard::cli {

namespace {

using Align = TextTable::Align;

void list() {
  TextTable table;
  table.add_column("name", Align::left);
  table.add_column("tables");
  table.add_column("batch size");
  table.add_column("optimizer", Align::left);
  table.add_column("source", Align::left);
  for (const WorkloadInfo& info : list_workloads()) {
    table.add_row({info.name, fmt::format("{}", info.num_tables),
                   fmt::format("{}", info.batch_size), std::string(to_string(info.optimizer)),
                   info.source});
  }
  fmt::print("{}", table.to_string());
}

struct ShowOptions {
  std::string name;
  std::uint64_t seed = 0;
  std::int64_t batch_size = 0;
  bool tables = false;
};

void print_tables(const Workload& workload) {
  TextTable table;
  table.add_column("table", Align::left);
  for (const char* title : {"num_embeddings", "embedding_dim", "pooling_factor"}) {
    table.add_column(title);
  }
  for (const Table& t : workload.tables) {
    table.add_row({t.name, fmt::format("{}", t.num_embeddings), fmt::format("{}", t.embedding_dim),
                   fmt::format("{:.4g}", t.pooling_factor)});
  }
  fmt::print("\n{}", table.to_string());
}

void show(const ShowOptions& options) {
  const Workload workload = find_workload(options.name, options.seed);
  const std::int64_t batch_size = options.batch_size > 0 ? options.batch_size : workload.batch_size;
  const AggregateStatistics statistics = aggregate_statistics(workload.tables, batch_size);
  double bytes = 0.0;
  for (const Table& table : workload.tables) {
    bytes += static_cast<double>(table.num_embeddings * table.embedding_dim *
                                 element_bytes(table.data_type));
  }
  fmt::print("{}: {}\n", workload.name, workload.source);
  fmt::print("tables               {}\n", workload.tables.size());
  fmt::print("rows                 {}\n", statistics.num_embeddings);
  fmt::print("weights              {}\n", format_bytes(bytes));
  fmt::print("mean pooling factor  {:.3f}\n", statistics.mean_pooling_factor);
  fmt::print("batch size           {}\n", batch_size);
  fmt::print("lookups per batch    {:.0f}\n", statistics.num_indices);
  fmt::print("distinct rows        {:.0f}\n\n", statistics.distinct_rows);
  TextTable table;
  for (const char* title : {"rows hit", "share of rows", "share of lookups"}) {
    table.add_column(title);
  }
  for (int bin = 0; bin < kReuseBins; ++bin) {
    const std::int64_t high = std::int64_t{1} << bin;
    const std::string hits = bin < 2                ? fmt::format("{}", high)
                             : bin < kReuseBins - 1 ? fmt::format("{}-{}", high / 2 + 1, high)
                                                    : fmt::format("> {}", high / 2);
    table.add_row({hits, fmt::format("{:.4f}", statistics.share_of_rows[bin]),
                   fmt::format("{:.4f}", statistics.share_of_indices[bin])});
  }
  fmt::print("{}", table.to_string());
  if (options.tables) print_tables(workload);
}

struct TasksOptions {
  std::string name;
  std::uint64_t workload_seed = 0;
  int count = 100;
  std::string tables = "10:60";
  std::string memory = "4GiB";
  std::string fill;
  std::string optimizer;
  TaskGeneratorOptions generator;
  std::string output;
};

void generate(TasksOptions& options) {
  TaskGeneratorOptions& generator = options.generator;
  const Workload workload = find_workload(options.name, options.workload_seed);
  std::tie(generator.min_tables, generator.max_tables) = parse_range(options.tables, "--tables");
  generator.memory_bytes = parse_bytes(options.memory, "--memory");
  if (!options.fill.empty()) {
    std::tie(generator.min_fill, generator.max_fill) = parse_shares(options.fill, "--fill");
  }
  generator.optimizer = options.optimizer.empty()
                            ? workload.optimizer
                            : parse_optimizer(options.optimizer, "--optimizer");
  std::vector<Task> tasks;  // all of them first: no folder if one of them cannot be
  for (int i = 0; i < options.count; ++i) {
    tasks.push_back(generate_task(workload, generator, static_cast<std::uint64_t>(i)));
  }
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error) throw InputError(options.output, "a folder to write to", error.message());
  const int width = static_cast<int>(std::to_string(options.count - 1).size());
  for (int i = 0; i < options.count; ++i) {
    write_task(tasks[i], fmt::format("{}/task-{:0{}}.json", options.output, i, width));
  }
  fmt::print("{} tasks written to {}\n", options.count, options.output);
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
  command->add_option("--tables", options->tables, "Tables of a task, as MIN:MAX")
      ->capture_default_str();
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
                   "Only tables of at most this; 0: any")
      ->capture_default_str();
  command->add_option("--batch-size", options->generator.batch_size, "0: the workload's")
      ->check(integer_between(0, kMaxBatchSize))
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "Default: the workload's");
  command->add_option("--seed", options->generator.seed, "Seed of the tasks")
      ->check(seed())
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Folder to write to")->required();
  command->callback([options] { generate(*options); });
}

}  // namespace

void add_workload_command(CLI::App& app) {
  CLI::App* workload = app.add_subcommand("workload", "Tables of recommendation models");
  workload->require_subcommand(1);
  workload->add_subcommand("list", "Which workloads there are")->callback(list);

  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = workload->add_subcommand("show", "What a workload consists of");
  command->add_option("name", options->name, "Workload")->required();
  command->add_option("--workload-seed,--seed", options->seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--batch-size", options->batch_size, "0: the workload's")
      ->check(integer_between(0, kMaxBatchSize))
      ->capture_default_str();
  command->add_flag("--tables", options->tables, "Every table too");
  command->callback([options] { show(*options); });

  add_tasks(*workload);
}

}  // namespace neuroshard::cli
