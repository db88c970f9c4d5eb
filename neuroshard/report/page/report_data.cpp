// Numbers of a report that follow from the task, the plans and their evaluations alone: no model is
// asked.
#include "neuroshard/report/page/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/report/page/plan_words.h"
#include "neuroshard/workload/reuse/access_by_row.h"

namespace neuroshard {

namespace {

void require_valid_plan(const NamedPlan& plan) {
  const std::vector<std::string> found = violations(plan.document.task, plan.document.plan);
  if (found.empty()) return;
  const auto more = static_cast<std::int64_t>(found.size()) - 1;
  throw InfeasibleError(fmt::format("{}: not valid: {}{}", plan.name, found.front(),
                                    more > 0
                                        ? fmt::format(" (and {}, which neuroshard check lists)",
                                                      format_count(more, "other violation"))
                                        : ""));
}

void require_same_task(const NamedPlan& first, const NamedPlan& other) {
  const std::vector<JsonDifference> found =
      first_difference(to_json(first.document.task), to_json(other.document.task), "task");
  if (found.empty()) return;
  throw InputError(fmt::format("{}: {}", other.name, found.front().place),
                   fmt::format("{} as in {}", found.front().expected, first.name),
                   found.front().actual);
}

/// The shares of the accesses that ranges of rows have.
class RowAccesses {
 public:
  explicit RowAccesses(const Task& task) : task_(&task) {}

  double share(const Shard& shard) {
    const Piece piece = piece_of(*task_, shard);
    if (piece.num_rows == 0) return piece.row_share;
    auto& accesses = of_table_[shard.table];
    if (!accesses) {
      accesses = std::make_unique<AccessByRow>(task_->tables[shard.table], task_->batch_size);
    }
    return accesses->range(piece.row_offset, piece.num_rows).share;
  }

 private:
  const Task* task_;
  std::map<int, std::unique_ptr<AccessByRow>> of_table_;
};

/// Of `samples` samples and all rows.
double looked_up_bytes(const Table& table, std::int64_t num_columns, std::int64_t samples) {
  return static_cast<double>(samples) * table.pooling_factor * static_cast<double>(num_columns) *
         static_cast<double>(element_bytes(table.data_type));
}

std::vector<ReportPiece> pieces_of(const Task& task, const ShardingPlan& plan) {
  RowAccesses accesses(task);
  std::vector<ReportPiece> pieces;
  for (const Shard& shard : plan.shards) {
    const Table& table = task.tables[shard.table];
    pieces.push_back(
        {shard, shard_bytes(table, shard.num_columns, task.optimizer, shard.rows_of(table)),
         looked_up_bytes(table, shard.num_columns, task.batch_size) * accesses.share(shard)});
  }
  return pieces;
}

std::vector<ReportDevice> devices_of(const PlanDocument& document,
                                     const std::vector<ReportPiece>& pieces) {
  const Task& task = document.task;
  std::vector<ReportDevice> devices(static_cast<std::size_t>(task.topology.world_size));
  const std::vector<std::int64_t> memory = device_memory(task, document.plan);
  double copies = 0.0;
  for (const int table : document.plan.replicated_tables) {
    copies += looked_up_bytes(task.tables[table], task.tables[table].embedding_dim,
                              replica_batch_size(task));
  }
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d].memory_bytes = memory[d];
    devices[d].memory_limit_bytes = task.topology.memory_bytes[d];
    devices[d].looked_up_bytes = copies;
  }
  for (const ReportPiece& piece : pieces) {
    ReportDevice& device = devices[static_cast<std::size_t>(piece.shard.device)];
    ++device.num_pieces;
    device.looked_up_bytes += piece.looked_up_bytes;
  }
  if (!document.predicted) return devices;
  const std::vector<double> waiting = waiting_ms(document.predicted->devices);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d].cost = document.predicted->devices[d];
    devices[d].waiting_ms = waiting[d];
  }
  return devices;
}

/// What another program wrote into `search` may be anything: fields that are not as the format says
/// count as absent.
double number_or(const Json* value, double otherwise) {
  if (value == nullptr) return otherwise;
  if (const auto* integer = std::get_if<std::int64_t>(&value->value())) {
    return static_cast<double>(*integer);
  }
  const auto* number = std::get_if<double>(&value->value());
  return number != nullptr ? *number : otherwise;
}

double number_or(const Json& object, std::string_view key, double otherwise) {
  return number_or(object.find(key), otherwise);
}

const Json::Array& array_of(const Json* object, std::string_view key) {
  static const Json::Array kNone;
  const Json* field = object == nullptr ? nullptr : object->find(key);
  return field == nullptr || field->array() == nullptr ? kNone : *field->array();
}

double chains_priced(const Json& round) {
  double priced = 0.0;
  for (const Json& chain : array_of(&round, "chains")) {
    priced += number_or(chain, "plans_priced", 0.0);
  }
  return priced;
}

SearchHistory history_of(const Json& search) {
  const Json* statistics = search.find("statistics");
  SearchHistory history;
  double priced = 0.0;
  const auto add = [&](std::vector<SearchPoint>& points, double cost_ms) {
    if (!(cost_ms > 0.0)) return;
    const double best = points.empty() ? cost_ms : std::min(points.back().best_cost_ms, cost_ms);
    points.push_back({static_cast<std::int64_t>(std::min(priced, 0x1p62)), best});
  };
  for (const Json& level : array_of(statistics, "levels")) {
    priced += std::max(number_or(level, "plans_priced", 0.0), 0.0);
    add(history.levels, number_or(level, "best_cost_ms", 0.0));
  }
  for (const Json& round : array_of(statistics, "rounds")) {
    if (history.rounds.empty()) add(history.rounds, number_or(round, "cost_before_ms", 0.0));
    priced += std::max(chains_priced(round), 0.0);
    add(history.rounds, number_or(round, "cost_after_ms", 0.0));
  }
  return history;
}

ReportPlan report_plan(const NamedPlan& plan) {
  ReportPlan report;
  report.plan = plan;
  report.pieces = pieces_of(plan.document.task, plan.document.plan);
  report.devices = devices_of(plan.document, report.pieces);
  report.history = history_of(plan.document.search);
  report.words = plan_words(report);
  return report;
}

void add_evaluation(const NamedEvaluation& evaluation, std::vector<ReportPlan>& plans) {
  for (ReportPlan& plan : plans) {
    if (!is_evaluation_of(evaluation.record, plan.plan.document)) continue;
    plan.evaluations.push_back(evaluation);
    return;
  }
  throw InputError(evaluation.name,
                   plans.size() == 1 ? fmt::format("an evaluation of {}", plans[0].plan.name)
                                     : "an evaluation of one of the plans",
                   "that of another plan");
}

}  // namespace

std::vector<double> waiting_ms(std::span<const DeviceCost> devices) {
  const auto entered_ms = [](const DeviceCost& device) {
    return device.backward_comm_ms + device.all_reduce_ms + device.compute_ms;
  };
  double last_ms = 0.0;
  for (const DeviceCost& device : devices) last_ms = std::max(last_ms, entered_ms(device));
  std::vector<double> waiting;
  for (const DeviceCost& device : devices) {
    waiting.push_back(std::min(device.forward_comm_ms, last_ms - entered_ms(device)));
  }
  return waiting;
}

ReportData report_data(const std::vector<NamedPlan>& plans,
                       const std::vector<NamedEvaluation>& evaluations) {
  if (plans.empty()) throw InputError("plans", "at least one plan", "none");
  ReportData data;
  data.task = plans.front().document.task;
  for (const NamedPlan& plan : plans) {
    require_same_task(plans.front(), plan);
    require_valid_plan(plan);
    data.plans.push_back(report_plan(plan));
  }
  for (const NamedEvaluation& evaluation : evaluations) add_evaluation(evaluation, data.plans);
  return data;
}

}  // namespace neuroshard
