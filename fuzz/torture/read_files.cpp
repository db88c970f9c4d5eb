// The promises of the readers that take files: models price plans, journals are continued.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/grammar/damage.h"
#include "fuzz/grammar/grammar.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "fuzz/torture/readers.h"
#include "fuzz/torture/use.h"
#include "neuroshard/cost/communication/communication_model_io.h"
#include "neuroshard/cost/compute/compute_model_io.h"
#include "neuroshard/cost/model_description.h"
#include "neuroshard/cost/simulator.h"
#include "neuroshard/evaluate/comparison.h"
#include "neuroshard/evaluate/comparison_io.h"
#include "neuroshard/io/file.h"
#include "neuroshard/report/comparison_report.h"
#include "neuroshard/report/model_report.h"

namespace neuroshard::fuzz {

namespace {

/// Tables on four devices, of which one is cut into columns, one into rows, and one copied.
Task task_to_price(Random& random) {
  Task task;
  task.batch_size = integer_between(1, kMaxBatchSize, random);
  if (once_in(2, random)) task.optimizer = Optimizer::rowwise_adagrad;
  for (int i = 0; i < 4; ++i) {
    Table table;
    table.name = "t" + std::to_string(i);
    table.num_embeddings = integer_between(2, kMaxEmbeddings, random);
    table.embedding_dim = 4 * integer_between(2, kMaxEmbeddingDim / 4, random);
    table.pooling_factor = number_between(5e-324, kMaxPoolingFactor, random);
    task.tables.push_back(std::move(table));
  }
  task.topology = {.world_size = 4,
                   .local_world_size = once_in(2, random) ? 1 : 2,
                   .memory_bytes = std::vector<std::int64_t>(4, std::int64_t{1} << 60)};
  return task;
}

ShardingPlan plan_to_price(const Task& task) {
  const std::int64_t dim = task.tables[0].embedding_dim;
  const std::int64_t rows = task.tables[1].num_embeddings;
  ShardingPlan plan;
  plan.shards = {{.table = 0, .num_columns = 4, .device = 0},
                 {.table = 0, .column_offset = 4, .num_columns = dim - 4, .device = 1},
                 {.table = 1,
                  .num_columns = task.tables[1].embedding_dim,
                  .device = 1,
                  .row_offset = 0,
                  .num_rows = rows / 2},
                 {.table = 1,
                  .num_columns = task.tables[1].embedding_dim,
                  .device = 2,
                  .row_offset = rows / 2,
                  .num_rows = rows - rows / 2},
                 {.table = 2, .num_columns = task.tables[2].embedding_dim, .device = 2}};
  plan.replicated_tables = {3};
  return plan;
}

/// A plan has a price by these models, or an error says what is wrong with it.
bool price_by(std::shared_ptr<const ComputeCostModel> compute,
              std::shared_ptr<const CommunicationCostModel> communication, Random& random) {
  const Task task = task_to_price(random);
  return answered([&] {
    const Simulator simulator(task, std::move(compute), std::move(communication));
    const ShardingPlan plan = plan_to_price(task);
    require_cost(simulator.cost(plan));
    for (const MemberRange& range : simulator.member_ranges(plan)) {
      require(range.least_ms <= range.most_ms, "the range of a model's networks is one");
    }
    for (const std::string& warning : simulator.communication().outside_range(task)) {
      require(!warning.empty(), "a warning says something");
    }
  });
}

std::string entries_text(const std::vector<ComparisonEntry>& entries) {
  std::string text;
  for (const ComparisonEntry& entry : entries) text += to_line(to_json(entry));
  return text;
}

/// The tasks that the journal has not are added, and it is read once more.
void require_continued(const std::string& path) {
  const ComparedResults& results = journal_results();
  const auto num_tasks = static_cast<std::int64_t>(results.tasks.size());
  std::vector<std::string> before;
  {
    ComparisonJournal journal(path, journal_comparison(), results);
    for (std::int64_t t = 0; t < num_tasks; ++t) {
      if (journal.find(t) == nullptr) {
        std::vector<ComparisonEntry> entries(results.algorithms.size());
        for (std::size_t a = 0; a < entries.size(); ++a) {
          entries[a].task = results.tasks[static_cast<std::size_t>(t)];
          entries[a].algorithm = results.algorithms[a];
          entries[a].reason = "no room";
        }
        journal.append(t, entries);
        before.push_back(entries_text(entries));
      } else {
        before.push_back(entries_text(*journal.find(t)));
      }
    }
  }
  const ComparisonJournal again(path, journal_comparison(), results);
  for (std::int64_t t = 0; t < num_tasks; ++t) {
    const auto* entries = again.find(t);
    require(entries != nullptr && entries_text(*entries) == before[static_cast<std::size_t>(t)],
            "a journal gives back what it has");
  }
}

}  // namespace

Outcome read_model_file(std::string_view bytes, Workplace& place, Random& random) {
  if (!safetensors(bytes)) return Outcome::refused;
  const std::string path = place.write("model.safetensors", bytes);
  std::shared_ptr<const ComputeCostModel> compute;
  std::shared_ptr<const CommunicationCostModel> communication;
  const bool is_read = accept_or_refuse(
      [&] {
        const ModelFile file(path);
        if (file.kind() == "compute") {
          compute = compute_model_from(file, path);
        } else {
          const CommunicationModelFile model = communication_model_from(file, path);
          communication = model.of_cluster(one_of(model.info.clusters, random).interconnect.name,
                                           path + ": cluster");
        }
      },
      path);
  if (!is_read) return Outcome::refused;
  const bool is_shown = answered([&] {
    const ModelEntry entry = find_model(path);
    (void)to_line(model_json(entry));
    require_text(model_text(entry));
  });
  require(is_shown, "a model that is read can be shown");
  const CostModels& others = place.models(random);
  if (compute == nullptr) compute = others.compute;
  if (communication == nullptr) communication = others.communication;
  return price_by(compute, communication, random) ? Outcome::used : Outcome::read;
}

Outcome read_journal_file(std::string_view bytes, Workplace& place, Random& random) {
  const std::string path = place.write("journal.jsonl", bytes);
  std::vector<ComparisonEntry> entries;
  const bool is_read = accept_or_refuse(
      [&] {
        const ComparisonJournal journal(path, journal_comparison(), journal_results());
        for (std::size_t t = 0; t < journal_results().tasks.size(); ++t) {
          const auto* of_task = journal.find(static_cast<std::int64_t>(t));
          if (of_task != nullptr) entries.insert(entries.end(), of_task->begin(), of_task->end());
        }
      },
      path);
  if (!is_read) {
    require(read_file(path) == bytes, "a journal that is refused stays as it was");
    return Outcome::refused;
  }
  const std::vector<ComparisonSummary> summaries = summarize(entries, "random");
  const ComparisonSetting setting{.reference = "random"};
  if (!entries.empty()) require_text(comparison_text(entries, summaries, setting));
  (void)to_line(comparison_document({&place.models(random), 1}, entries, summaries, setting));
  if (!once_in(40, random)) return Outcome::read;
  require_continued(path);
  return Outcome::used;
}

}  // namespace neuroshard::fuzz
