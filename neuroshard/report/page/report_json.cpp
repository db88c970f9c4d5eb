// Tables and pieces are many: pieces are arrays, and refer to tables by number.
#include "neuroshard/report/page/report_json.h"

#include <string>
#include <utility>

#include "neuroshard/core/slowest_device.h"
#include "neuroshard/core/version.h"

namespace neuroshard {

namespace {

Json table_json(const Table& table, Optimizer optimizer) {
  return Json::Object{{"name", table.name},
                      {"num_embeddings", table.num_embeddings},
                      {"embedding_dim", table.embedding_dim},
                      {"pooling_factor", table.pooling_factor},
                      {"data_type", to_string(table.data_type)},
                      {"memory_bytes", shard_bytes(table, table.embedding_dim, optimizer)}};
}

Json task_json(const Task& task) {
  Json::Array tables;
  for (const Table& table : task.tables) tables.push_back(table_json(table, task.optimizer));
  return Json::Object{{"batch_size", task.batch_size},
                      {"optimizer", to_string(task.optimizer)},
                      {"world_size", task.topology.world_size},
                      {"local_world_size", task.topology.local_world_size},
                      {"tables", std::move(tables)}};
}

Json piece_json(const Task& task, const ReportPiece& piece) {
  const Shard& shard = piece.shard;
  return Json::Array{
      shard.table,         shard.row_offset,     shard.rows_of(task.tables[shard.table]),
      shard.column_offset, shard.num_columns,    shard.device,
      piece.memory_bytes,  piece.looked_up_bytes};
}

/// The parts of a device's time: forward communication without the waiting.
void set_parts(Json& json, const DeviceCost& cost, double waiting) {
  json.set("backward_comm_ms", cost.backward_comm_ms);
  json.set("all_reduce_ms", cost.all_reduce_ms);
  json.set("compute_ms", cost.compute_ms);
  json.set("waiting_ms", waiting);
  json.set("forward_comm_ms", cost.forward_comm_ms - waiting);
  json.set("total_ms", cost.total_ms());
}

Json device_json(const ReportDevice& device) {
  Json json = Json::Object{{"memory_bytes", device.memory_bytes},
                           {"memory_limit_bytes", device.memory_limit_bytes},
                           {"num_pieces", device.num_pieces},
                           {"looked_up_bytes", device.looked_up_bytes}};
  if (!device.cost) return json;
  json.set("num_columns", device.cost->num_columns);
  set_parts(json, *device.cost, device.waiting_ms);
  return json;
}

Json points_json(const std::vector<SearchPoint>& points) {
  Json::Array array;
  for (const SearchPoint& point : points) {
    array.push_back(Json::Array{point.plans_priced, point.best_cost_ms});
  }
  return array;
}

Json costs_json(const PlanCost& cost) {
  const std::vector<double> waiting = waiting_ms(cost.devices);
  Json::Array devices;
  for (std::size_t d = 0; d < cost.devices.size(); ++d) {
    Json device = Json::Object{};
    set_parts(device, cost.devices[d], waiting[d]);
    devices.push_back(std::move(device));
  }
  return Json::Object{{"cost_ms", cost.cost_ms}, {"devices", std::move(devices)}};
}

const char* kind_name(EvaluationKind kind) {
  switch (kind) {
    case EvaluationKind::computation:
      return "computation";
    case EvaluationKind::simulated:
      return "simulated";
    case EvaluationKind::iterations:
      break;
  }
  return "iterations";
}

Json texts(const std::vector<std::string>& lines) {
  return Json::Array(lines.begin(), lines.end());
}

Json evaluation_json(const NamedEvaluation& evaluation) {
  Json json = Json::Object{{"name", evaluation.name},
                           {"kind", kind_name(evaluation.record.kind)},
                           {"predicted", costs_json(evaluation.record.predicted)},
                           {"actual", costs_json(evaluation.record.actual)}};
  if (!evaluation.record.interval.empty()) {
    json.set("interval",
             Json::Array(evaluation.record.interval.begin(), evaluation.record.interval.end()));
  }
  json.set("model", evaluation.record.model);
  json.set("warnings", texts(evaluation.record.warnings));
  return json;
}

Json plan_json(const ReportPlan& plan) {
  const PlanDocument& document = plan.plan.document;
  Json::Array pieces;
  for (const ReportPiece& piece : plan.pieces) pieces.push_back(piece_json(document.task, piece));
  Json::Array devices;
  for (const ReportDevice& device : plan.devices) devices.push_back(device_json(device));
  Json::Array evaluations;
  for (const NamedEvaluation& evaluation : plan.evaluations) {
    evaluations.push_back(evaluation_json(evaluation));
  }
  Json json = Json::Object{{"name", plan.plan.name}};
  if (document.predicted) {
    const std::vector<DeviceCost>& costs = document.predicted->devices;
    json.set("cost_ms", document.predicted->cost_ms);
    if (!equally_slow(costs)) json.set("slowest", slowest_device(costs));
  }
  json.set("words", texts(plan.words));
  json.set("devices", std::move(devices));
  json.set("pieces", std::move(pieces));
  json.set("replicated_tables", Json::Array(document.plan.replicated_tables.begin(),
                                            document.plan.replicated_tables.end()));
  json.set("history", Json::Object{{"levels", points_json(plan.history.levels)},
                                   {"rounds", points_json(plan.history.rounds)}});
  json.set("model", document.model);
  json.set("search", document.search);
  json.set("warnings", texts(document.warnings));
  json.set("evaluations", std::move(evaluations));
  return json;
}

}  // namespace

Json to_json(const ReportData& data) {
  Json::Array plans;
  for (const ReportPlan& plan : data.plans) plans.push_back(plan_json(plan));
  return Json::Object{{"format", "neuroshard/report/1"},
                      {"version", std::string(version())},
                      {"task", task_json(data.task)},
                      {"plans", std::move(plans)}};
}

}  // namespace neuroshard
