// Plans to and from JSON.
#include "neuroshard/io/plan_io.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "neuroshard/core/error.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/sample_io.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {

namespace {

using TableIndex = std::unordered_map<std::string_view, int>;

TableIndex index_by_name(const Task& task) {
  TableIndex index;
  for (std::size_t i = 0; i < task.tables.size(); ++i) {
    index.emplace(task.tables[i].name, static_cast<int>(i));
  }
  return index;
}

int table_from_json(const JsonReader& name, const TableIndex& tables) {
  const auto table = tables.find(name.text());
  if (table == tables.end()) name.fail("the name of a table of the task");
  return table->second;
}

Shard shard_from_json(const JsonReader& reader, const TableIndex& tables) {
  reader.allow_fields(
      {"table", "row_offset", "num_rows", "column_offset", "num_columns", "device"});
  constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
  Shard shard;
  shard.table = table_from_json(reader.field("table"), tables);
  shard.column_offset = reader.field("column_offset").integer();
  shard.num_columns = reader.field("num_columns").integer();
  shard.device = static_cast<int>(reader.field("device").integer(-kMaxInt, kMaxInt));
  const auto row_offset = reader.optional_field("row_offset");
  const auto num_rows = reader.optional_field("num_rows");
  if (row_offset.has_value() != num_rows.has_value()) {
    reader.fail("row_offset and num_rows, or neither", row_offset ? "row_offset" : "num_rows");
  }
  if (num_rows) {
    shard.row_offset = row_offset->integer();
    shard.num_rows = num_rows->integer(1, kMaxEmbeddings);
  }
  return shard;
}

DeviceCost device_cost_from_json(const JsonReader& reader) {
  reader.allow_fields({"compute_ms", "all_reduce_ms", "forward_comm_ms", "backward_comm_ms",
                       "memory_bytes", "num_columns"});
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  DeviceCost cost;
  cost.compute_ms = time_from_json(reader.field("compute_ms"), /*zero_allowed=*/true);
  cost.forward_comm_ms = time_from_json(reader.field("forward_comm_ms"), /*zero_allowed=*/true);
  cost.backward_comm_ms = time_from_json(reader.field("backward_comm_ms"), /*zero_allowed=*/true);
  if (const auto all_reduce = reader.optional_field("all_reduce_ms")) {
    cost.all_reduce_ms = time_from_json(*all_reduce, /*zero_allowed=*/true);
  }
  cost.memory_bytes = reader.field("memory_bytes").integer(0, kMax);
  cost.num_columns = reader.field("num_columns").integer(0, kMax);
  return cost;
}

PlanCost plan_cost_from_json(const JsonReader& reader, int world_size) {
  reader.allow_fields({"cost_ms", "devices"});
  PlanCost cost;
  cost.cost_ms = time_from_json(reader.field("cost_ms"), /*zero_allowed=*/true);
  const JsonReader devices = reader.field("devices");
  if (devices.array_size() != static_cast<std::size_t>(world_size)) {
    devices.fail(fmt::format("an array of one object for each of {} devices", world_size));
  }
  for (std::size_t device = 0; device < devices.array_size(); ++device) {
    cost.devices.push_back(device_cost_from_json(devices.element(device)));
  }
  return cost;
}

PlanDocument plan_from_json(const JsonReader& reader) {
  reader.expect_format(kPlanFormat);
  reader.allow_fields({"format", "task", "shards", "replicated_tables", "predicted", "model",
                       "search", "warnings"});
  PlanDocument document;
  document.task = task_from_json(reader.field("task"));
  const TableIndex tables = index_by_name(document.task);
  const JsonReader shards = reader.field("shards");
  for (std::size_t i = 0; i < shards.array_size(); ++i) {
    document.plan.shards.push_back(shard_from_json(shards.element(i), tables));
  }
  if (const auto replicated = reader.optional_field("replicated_tables")) {
    for (std::size_t i = 0; i < replicated->array_size(); ++i) {
      document.plan.replicated_tables.push_back(table_from_json(replicated->element(i), tables));
    }
  }
  if (const auto predicted = reader.optional_field("predicted")) {
    document.predicted = plan_cost_from_json(*predicted, document.task.topology.world_size);
  }
  if (const auto model = reader.optional_field("model")) document.model = model->object();
  if (const auto search = reader.optional_field("search")) document.search = search->object();
  if (const auto warnings = reader.optional_field("warnings")) {
    for (std::size_t i = 0; i < warnings->array_size(); ++i) {
      document.warnings.push_back(warnings->element(i).text());
    }
  }
  return document;
}

const std::string& name_of_table(const Task& task, int table, const std::string& place) {
  if (table < 0 || table >= static_cast<int>(task.tables.size())) {
    throw InputError(place, fmt::format("an index below {}", task.tables.size()),
                     fmt::to_string(table));
  }
  return task.tables[table].name;
}

Json shards_to_json(const PlanDocument& document) {
  Json::Array shards;
  for (const Shard& shard : document.plan.shards) {
    Json json;
    json.set("table", name_of_table(document.task, shard.table,
                                    fmt::format("shards[{}].table", shards.size())));
    if (!shard.has_all_rows()) {
      json.set("row_offset", shard.row_offset);
      json.set("num_rows", shard.num_rows);
    }
    json.set("column_offset", shard.column_offset);
    json.set("num_columns", shard.num_columns);
    json.set("device", shard.device);
    shards.push_back(std::move(json));
  }
  return shards;
}

Json replicated_tables_to_json(const PlanDocument& document) {
  Json::Array names;
  for (const int table : document.plan.replicated_tables) {
    names.emplace_back(
        name_of_table(document.task, table, fmt::format("replicated_tables[{}]", names.size())));
  }
  return names;
}

Json to_json(const DeviceCost& cost) {
  Json json;
  json.set("compute_ms", cost.compute_ms);
  if (cost.all_reduce_ms != 0.0) json.set("all_reduce_ms", cost.all_reduce_ms);
  json.set("forward_comm_ms", cost.forward_comm_ms);
  json.set("backward_comm_ms", cost.backward_comm_ms);
  json.set("memory_bytes", cost.memory_bytes);
  json.set("num_columns", cost.num_columns);
  return json;
}

Json to_json(const PlanCost& cost) {
  Json::Array devices;
  for (const DeviceCost& device : cost.devices) devices.push_back(to_json(device));
  return Json().set("cost_ms", cost.cost_ms).set("devices", std::move(devices));
}

}  // namespace

Json to_json(const ModelReference& model) {
  Json json;
  json.set("name", model.name);
  if (!model.sha256.empty()) json.set("sha256", model.sha256);
  if (!model.file.empty()) json.set("file", model.file);
  if (model.is_simulated) json.set("is_simulated", true);
  return json;
}

std::optional<ModelReference> model_reference(const Json& models, std::string_view kind) {
  const Json* entry = models.find(kind);
  if (entry == nullptr) return std::nullopt;
  const auto text = [&](std::string_view key) {
    const Json* field = entry->find(key);
    return field != nullptr && field->text() != nullptr ? *field->text() : std::string();
  };
  const Json* is_simulated = entry->find("is_simulated");
  return ModelReference{text("name"), text("sha256"), text("file"),
                        is_simulated != nullptr && *is_simulated == Json(true)};
}

PlanDocument parse_plan(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  return plan_from_json(JsonReader(document, file));
}

PlanDocument read_plan(const std::string& path) { return parse_plan(read_file(path), path); }

std::string plan_text(const PlanDocument& document) {
  validate(document.task);
  Json json;
  json.set("format", kPlanFormat);
  json.set("task", to_json(document.task));
  json.set("shards", shards_to_json(document));
  if (!document.plan.replicated_tables.empty()) {
    json.set("replicated_tables", replicated_tables_to_json(document));
  }
  if (document.predicted) json.set("predicted", to_json(*document.predicted));
  json.set("model", document.model);
  json.set("search", document.search);
  if (!document.warnings.empty()) {
    json.set("warnings", Json::Array(document.warnings.begin(), document.warnings.end()));
  }
  return to_document(json);
}

void write_plan(const PlanDocument& document, const std::string& path) {
  write_file(path, plan_text(document));
}

}  // namespace neuroshard
