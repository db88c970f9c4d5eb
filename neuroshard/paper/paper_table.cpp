// Cells of the paper's table.
#include "neuroshard/paper/paper_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"
#include "neuroshard/cost/model_catalog.h"
#include "neuroshard/evaluate/comparison_warnings.h"
#include "neuroshard/io/input_limit.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/report/comparison_report.h"
#include "neuroshard/report/text_table.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

namespace {

std::string cell_name(int devices, std::int64_t max_dim) {
  return fmt::format("devices-{}-max-dim-{}", devices, max_dim);
}

std::string journal_of(const PaperTableOptions& options, const std::string& cell) {
  return fmt::format("{}/{}.jsonl", options.folder, cell);
}

/// Tables of the paper's tasks, per device.
constexpr double kFewestTables = 2.5;
constexpr double kMostTables = 15.0;

/// The fewest and the most tables of a task, as far as the workload has them.
std::pair<int, int> numbers_of_tables(const Workload& workload, int devices) {
  const auto available = static_cast<int>(workload.tables.size());
  return {std::min(static_cast<int>(kFewestTables * devices), available),
          std::min(static_cast<int>(kMostTables * devices), available)};
}

/// Beside its tables, what a task takes with its name, its origin and the entry of an algorithm.
constexpr double kBytesOfTask = 4096.0;

/// Of a cell, all tasks are held at once. The first one says how large they are.
void require_memory_for(int count, const NamedTask& first) {
  double bytes = kBytesOfTask;
  for (const Table& table : first.task.tables) {
    bytes += static_cast<double>(sizeof(Table) + table.name.capacity() +
                                 table.row_access.capacity() * sizeof(RowAccessPoint));
  }
  require_memory(bytes * count, "--count", fmt::format("for {}", format_count(count, "task")));
}

/// One line per algorithm, one column per cell.
template <typename Value>
std::string table_of(const char* title, std::span<const PaperTableCell> cells, const Value& value) {
  TextTable table;
  table.add_column(title, TextTable::Align::left);
  for (const PaperTableCell& cell : cells) table.add_column(fmt::format("{}", cell.max_dim));
  for (std::size_t a = 0; a < cells.front().summaries.size(); ++a) {
    std::vector<std::string> row{cells.front().summaries[a].algorithm};
    for (const PaperTableCell& cell : cells) row.push_back(value(cell.summaries[a]));
    table.add_row(std::move(row));
  }
  return table.to_string();
}

std::string mean_cost(const ComparisonSummary& summary) {
  const std::optional<double>& ms =
      summary.mean_measured_ms ? summary.mean_measured_ms : summary.mean_predicted_ms;
  return ms ? fmt::format("{:.3f}", *ms) : "-";
}

std::string share_solved(const ComparisonSummary& summary) {
  return fmt::format("{:.0f}%", 100.0 * summary.solved / summary.tasks);
}

Json cell_json(const PaperTableCell& cell) {
  Json::Array algorithms;
  for (const ComparisonSummary& summary : cell.summaries) {
    const std::optional<double>& predicted_ms = summary.mean_predicted_ms;
    Json json = Json::Object{{"algorithm", summary.algorithm}};
    if (summary.cuts) json.set("cuts", to_json(*summary.cuts));
    json.set("tasks", summary.tasks)
        .set("solved", summary.solved)
        .set("common", summary.common)
        .set("mean_predicted_ms", predicted_ms ? Json(*predicted_ms) : Json());
    if (summary.mean_measured_ms) json.set("mean_measured_ms", *summary.mean_measured_ms);
    algorithms.push_back(std::move(json));
  }
  return Json::Object{{"devices", cell.devices},
                      {"max_dim", cell.max_dim},
                      {"communication_is_simulated", cell.communication_is_simulated},
                      {"summary", std::move(algorithms)}};
}

}  // namespace

std::vector<NamedTask> paper_tasks(const PaperTableOptions& options, const Workload& workload,
                                   int devices, std::int64_t max_dim) {
  TaskGeneratorOptions generator = options.tasks;
  generator.num_devices = devices;
  generator.max_dim = max_dim;
  std::tie(generator.min_tables, generator.max_tables) = numbers_of_tables(workload, devices);
  std::vector<NamedTask> tasks;
  for (int i = 0; i < options.count; ++i) {
    if (i == 1) require_memory_for(options.count, tasks.front());
    const std::string name = fmt::format("{}x{}-{:03}", devices, max_dim, i);
    tasks.push_back({name, generate_task(workload, generator, static_cast<std::uint64_t>(i)),
                     Json::Object{{"workload", options.workload},
                                  {"workload_seed", options.workload_seed},
                                  {"seed", generator.seed},
                                  {"index", i},
                                  {"devices", devices},
                                  {"max_dim", max_dim},
                                  {"memory_bytes", generator.memory_bytes},
                                  {"batch_size", generator.batch_size},
                                  {"optimizer", std::string(to_string(generator.optimizer))},
                                  {"interconnect", generator.interconnect}}});
  }
  return tasks;
}

std::vector<std::string> paper_table_journals(const PaperTableOptions& options) {
  std::vector<std::string> paths;
  for (const int devices : options.devices) {
    for (const std::int64_t max_dim : options.max_dims) {
      paths.push_back(journal_of(options, cell_name(devices, max_dim)));
    }
  }
  return paths;
}

PaperTable run_paper_table(const PaperTableOptions& options, ComparisonRun& comparison,
                           const PaperTableCallbacks& callbacks) {
  const Workload workload = find_workload(options.workload, options.workload_seed);
  if (!options.devices.empty() && !options.max_dims.empty()) {
    // Refuses what would be refused below, before there is a folder.
    const std::vector<NamedTask> first =
        paper_tasks(options, workload, options.devices.front(), options.max_dims.front());
    (void)load_cost_models(options.models, first.front().task.topology);
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) throw InputError(options.folder, "a folder to write to", error.message());
  PaperTable table;
  CollectedWarnings warnings("tasks");
  for (const int devices : options.devices) {
    for (const std::int64_t max_dim : options.max_dims) {
      const std::vector<NamedTask> tasks = paper_tasks(options, workload, devices, max_dim);
      const CostModels models = load_cost_models(options.models, tasks.front().task.topology);
      const std::string name = cell_name(devices, max_dim);
      const std::vector<ComparisonEntry> entries = comparison.compare(
          tasks, {&models, 1}, journal_of(options, name), [&](const ComparisonProgress& progress) {
            if (callbacks.on_progress) callbacks.on_progress(name, progress);
          });
      add_warnings(tasks, {&models, 1}, entries, warnings);
      table.compute = models.compute;
      const auto [min_tables, max_tables] = numbers_of_tables(workload, devices);
      table.cells.push_back({devices, max_dim, summarize(entries), described(*models.compute),
                             described(*models.communication), models.communication->is_simulated(),
                             min_tables, max_tables});
    }
    if (callbacks.on_devices) {
      callbacks.on_devices(std::span(table.cells).last(options.max_dims.size()));
    }
  }
  table.warnings = warnings.lines();
  return table;
}

std::string paper_table_text(const PaperTableOptions& options, bool is_measured,
                             std::span<const PaperTableCell> cells) {
  if (cells.empty()) return "";
  const PaperTableCell& first = cells.front();
  return fmt::format(
             "{}, {} to {} tables, {} a column: mean {} cost [ms] over the tasks that every "
             "algorithm solved, by largest dimension\n",
             format_count(first.devices, "device"), first.min_tables, first.max_tables,
             format_count(options.count, "task"),
             is_measured ? "part-measured (computation measured, all-to-alls predicted)"
                         : "predicted") +
         fmt::format("computation model: {}\ncommunication model: {}\n",
                     printable(first.computation), printable(first.communication)) +
         cuts_text(cells.front().summaries) + table_of("mean cost [ms]", cells, mean_cost) + "\n" +
         table_of("share of tasks solved", cells, share_solved) + "\n";
}

Json paper_table_json(const PaperTable& table) {
  Json::Array cells;
  for (const PaperTableCell& cell : table.cells) cells.push_back(cell_json(cell));
  return Json::Object{{"format", "neuroshard/paper-table/1"},
                      {"warnings", Json::Array(table.warnings.begin(), table.warnings.end())},
                      {"cells", std::move(cells)}};
}

}  // namespace neuroshard
