// `neuroshard paper-table`: the main comparison of the paper, on generated tasks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/comparison_run.h"
#include "cli/options.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/io/file.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/workload/generate/task_generator.h"
#include "neuroshard/workload/workload_catalog.h"

namespace neuroshard::cli {

namespace {

/// Tables of the paper's tasks, per device.
constexpr double kFewestTables = 2.5;
constexpr double kMostTables = 15.0;

struct PaperTableOptions {
  std::string workload = "dlrm-2021";
  std::uint64_t workload_seed = 0;
  std::vector<int> devices{4, 8};
  std::vector<std::int64_t> max_dims{4, 8, 16, 32, 64, 128};
  int count = 100;
  std::string memory = "4GiB";
  std::string optimizer = "sgd";
  TaskGeneratorOptions tasks;
  ComparisonRunOptions run;
  std::string folder;
  std::string output;
};

/// A number of devices and a largest dimension.
struct Cell {
  int devices = 0;
  std::int64_t max_dim = 0;
};

using CellSummaries = std::map<std::string, ComparisonSummary>;

std::vector<NamedTask> tasks_of(const PaperTableOptions& options, const Workload& workload,
                                const Cell& cell) {
  TaskGeneratorOptions generator = options.tasks;
  generator.num_devices = cell.devices;
  generator.max_dim = cell.max_dim;
  const auto available = static_cast<int>(workload.tables.size());
  generator.min_tables = std::min(static_cast<int>(kFewestTables * cell.devices), available);
  generator.max_tables = std::min(static_cast<int>(kMostTables * cell.devices), available);
  std::vector<NamedTask> tasks;
  for (int i = 0; i < options.count; ++i) {
    const std::string name = fmt::format("{}x{}-{:03}", cell.devices, cell.max_dim, i);
    tasks.push_back({name, generate_task(workload, generator, static_cast<std::uint64_t>(i)),
                     Json::Object{{"workload", options.workload},
                                  {"workload_seed", options.workload_seed},
                                  {"seed", generator.seed},
                                  {"index", i},
                                  {"devices", cell.devices},
                                  {"max_dim", cell.max_dim},
                                  {"memory_bytes", generator.memory_bytes},
                                  {"batch_size", generator.batch_size},
                                  {"optimizer", std::string(to_string(generator.optimizer))},
                                  {"interconnect", generator.interconnect}}});
  }
  return tasks;
}

CellSummaries by_algorithm(const std::vector<ComparisonSummary>& summaries) {
  CellSummaries result;
  for (const ComparisonSummary& summary : summaries) result[summary.algorithm] = summary;
  return result;
}

/// One line per algorithm, one column per largest dimension.
template <typename Value>
void print_table(const char* title, const std::vector<std::string>& algorithms,
                 const std::vector<std::int64_t>& max_dims, const std::vector<CellSummaries>& cells,
                 const Value& value) {
  TextTable table;
  table.add_column(title, TextTable::Align::left);
  for (const std::int64_t max_dim : max_dims) table.add_column(fmt::format("{}", max_dim));
  for (const std::string& algorithm : algorithms) {
    std::vector<std::string> row{algorithm};
    for (const CellSummaries& cell : cells) row.push_back(value(cell.at(algorithm)));
    table.add_row(std::move(row));
  }
  fmt::print("{}\n", table.to_string());
}

Json cell_json(const Cell& cell, const std::vector<ComparisonSummary>& summaries) {
  Json::Array algorithms;
  for (const ComparisonSummary& summary : summaries) {
    Json json = Json::Object{{"algorithm", summary.algorithm},
                             {"tasks", summary.tasks},
                             {"solved", summary.solved},
                             {"common", summary.common},
                             {"mean_predicted_ms", summary.mean_predicted_ms}};
    if (summary.mean_measured_ms) json.set("mean_measured_ms", *summary.mean_measured_ms);
    algorithms.push_back(std::move(json));
  }
  return Json::Object{
      {"devices", cell.devices}, {"max_dim", cell.max_dim}, {"summary", std::move(algorithms)}};
}

void run(PaperTableOptions& options) {
  TaskGeneratorOptions& tasks = options.tasks;
  tasks.memory_bytes = parse_bytes(options.memory, "--memory");
  tasks.optimizer = parse_optimizer(options.optimizer, "--optimizer");
  if (!options.output.empty()) require_writable(options.output);
  const Workload workload = find_workload(options.workload, options.workload_seed);
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) throw InputError(options.folder, "a folder to write to", error.message());

  ComparisonRun comparison(options.run);
  Json::Array cells_json;
  for (const int devices : options.devices) {
    std::vector<CellSummaries> cells;
    std::vector<std::string> algorithms;
    for (const std::int64_t max_dim : options.max_dims) {
      const Cell cell{devices, max_dim};
      const std::vector<NamedTask> named = tasks_of(options, workload, cell);
      const CostModels models = load_cost_models(options.run.models, named.front().task.topology);
      const std::string name = fmt::format("devices-{}-max-dim-{}", devices, max_dim);
      const std::vector<ComparisonSummary> summaries = summarize(comparison.compare(
          named, models, fmt::format("{}/{}.jsonl", options.folder, name), name + ": "));
      cells.push_back(by_algorithm(summaries));
      algorithms.clear();
      for (const ComparisonSummary& summary : summaries) algorithms.push_back(summary.algorithm);
      cells_json.push_back(cell_json(cell, summaries));
    }
    fmt::print(
        "{} devices, {} to {} tables, {} tasks a column: mean {} cost [ms] over the tasks "
        "that every algorithm solved, by largest dimension\n",
        devices, static_cast<int>(kFewestTables * devices), static_cast<int>(kMostTables * devices),
        options.count, options.run.measure ? "measured" : "predicted");
    print_table("mean cost [ms]", algorithms, options.max_dims, cells,
                [](const ComparisonSummary& summary) {
                  return summary.common == 0
                             ? std::string("-")
                             : fmt::format("{:.3f}", summary.mean_measured_ms.value_or(
                                                         summary.mean_predicted_ms));
                });
    print_table("share of tasks solved", algorithms, options.max_dims, cells,
                [](const ComparisonSummary& summary) {
                  return fmt::format("{:.0f}%", 100.0 * summary.solved / summary.tasks);
                });
    (void)std::fflush(stdout);  // the next table may take an hour
  }
  if (!options.output.empty()) {
    write_file(options.output, to_document(Json::Object{{"format", "neuroshard/paper-table/1"},
                                                        {"cells", std::move(cells_json)}}));
  }
}

}  // namespace

void add_paper_table_command(CLI::App& app) {
  auto options = std::make_shared<PaperTableOptions>();
  options->tasks.batch_size = 4096;
  options->tasks.interconnect = "pcie4";
  CLI::App* command = app.add_subcommand(
      "paper-table", "The paper's main comparison: all algorithms, by devices and dimension");
  command
      ->add_option("--folder", options->folder,
                   "Folder of results task by task: a run that was stopped goes on")
      ->required();
  command->add_option("--count", options->count, "Tasks for each dimension and number of devices")
      ->check(integer_between(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--devices", options->devices, "Numbers of devices")
      ->check(integer_between(1, kMaxWorldSize))
      ->capture_default_str();
  command->add_option("--max-dims", options->max_dims, "Largest dimensions, powers of two")
      ->check(integer_between(kColumnGranularity, kMaxEmbeddingDim))
      ->capture_default_str();
  command->add_option("--workload", options->workload, "Tables to draw from")
      ->capture_default_str();
  command->add_option("--workload-seed", options->workload_seed, "Seed of a generated workload")
      ->check(seed())
      ->capture_default_str();
  command->add_option("--memory", options->memory, "Memory of each device")->capture_default_str();
  command->add_option("--batch-size", options->tasks.batch_size, "Samples over all devices")
      ->check(integer_between(1, kMaxBatchSize))
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "sgd or rowwise_adagrad")
      ->capture_default_str();
  command->add_option("--interconnect", options->tasks.interconnect, "Of the devices")
      ->capture_default_str();
  command->add_option("--task-seed", options->tasks.seed, "Seed of the tasks")
      ->check(seed())
      ->capture_default_str();
  add_comparison_options(*command, options->run);
  command->add_option("-o,--output", options->output, "Result to write (.json)");
  command->callback([options] { run(*options); });
}

}  // namespace neuroshard::cli
