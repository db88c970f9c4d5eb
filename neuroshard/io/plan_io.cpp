// Plans to and from JSON.
#include "neuroshard/io/plan_io.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "neuroshard/core/error.h"
#include "neuroshard/io/checksum.h"
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

int table_id_from_json(const JsonReader& name, const TableIndex& tables) {
  const auto table = tables.find(name.text());
  if (table == tables.end()) name.fail("the name of a table of the task");
  return table->second;
}

Shard shard_from_json(const JsonReader& reader, const TableIndex& tables) {
  reader.allow_fields(
      {"table", "row_offset", "num_rows", "column_offset", "num_columns", "device"});
  constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
  Shard shard;
  shard.table = table_id_from_json(reader.field("table"), tables);
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

std::optional<double> optional_time(const JsonReader& reader) {
  const auto ms = reader.optional_field("ms");
  return ms ? std::optional(time_from_json(*ms, /*zero_allowed=*/true)) : std::nullopt;
}

PlanMoves moves_from_json(const JsonReader& reader) {
  reader.allow_fields(
      {"older_plan_sha256", "max_move", "placed_bytes", "moved_bytes", "ms", "pairs"});
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  PlanMoves moves;
  if (const auto sha256 = reader.optional_field("older_plan_sha256")) {
    moves.older_plan_sha256 = sha256->text();
  }
  const JsonReader max_move = reader.field("max_move");
  moves.max_move = max_move.number();
  if (moves.max_move < 0.0 || moves.max_move > 1.0) max_move.fail("a share from 0 to 1");
  moves.placed_bytes = reader.field("placed_bytes").integer(0, kMax);
  moves.moved_bytes = reader.field("moved_bytes").integer(0, kMax);
  moves.ms = optional_time(reader);
  const JsonReader pairs = reader.field("pairs");
  for (std::size_t i = 0; i < pairs.array_size(); ++i) {
    const JsonReader pair = pairs.element(i);
    pair.allow_fields({"from", "to", "bytes", "ms"});
    const auto device = [&](const char* name) {
      return static_cast<int>(pair.field(name).integer(0, kMaxWorldSize - 1));
    };
    moves.pairs.push_back({{device("from"), device("to"), pair.field("bytes").integer(1, kMax)},
                           optional_time(pair)});
  }
  return moves;
}

PlanDocument plan_from_json(const JsonReader& reader) {
  reader.expect_format(kPlanFormat);
  reader.allow_fields({"format", "task", "shards", "replicated_tables", "predicted", "model",
                       "search", "warnings", "moves"});
  PlanDocument document;
  document.task = task_from_json(reader.field("task"));
  const TableIndex tables = index_by_name(document.task);
  const JsonReader shards = reader.field("shards");
  for (std::size_t i = 0; i < shards.array_size(); ++i) {
    Shard shard = shard_from_json(shards.element(i), tables);
    // All rows, however that is written, are no slice.
    if (shard.row_offset == 0 &&
        shard.num_rows == document.task.tables[shard.table].num_embeddings) {
      shard.num_rows = 0;
    }
    document.plan.shards.push_back(shard);
  }
  if (const auto replicated = reader.optional_field("replicated_tables")) {
    for (std::size_t i = 0; i < replicated->array_size(); ++i) {
      document.plan.replicated_tables.push_back(table_id_from_json(replicated->element(i), tables));
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
  if (const auto moves = reader.optional_field("moves")) document.moves = moves_from_json(*moves);
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

Json cost_json(const DeviceCost& cost) {
  Json json;
  json.set("compute_ms", cost.compute_ms);
  if (cost.all_reduce_ms != 0.0) json.set("all_reduce_ms", cost.all_reduce_ms);
  json.set("forward_comm_ms", cost.forward_comm_ms);
  json.set("backward_comm_ms", cost.backward_comm_ms);
  json.set("memory_bytes", cost.memory_bytes);
  json.set("num_columns", cost.num_columns);
  return json;
}

Json cost_json(const PlanCost& cost) {
  Json::Array devices;
  for (const DeviceCost& device : cost.devices) devices.push_back(cost_json(device));
  return Json().set("cost_ms", cost.cost_ms).set("devices", std::move(devices));
}

Json moves_json(const PlanMoves& moves) {
  Json json;
  if (!moves.older_plan_sha256.empty()) json.set("older_plan_sha256", moves.older_plan_sha256);
  json.set("max_move", moves.max_move);
  json.set("placed_bytes", moves.placed_bytes);
  json.set("moved_bytes", moves.moved_bytes);
  if (moves.ms) json.set("ms", *moves.ms);
  Json::Array pairs;
  for (const PlanMoves::Pair& pair : moves.pairs) {
    Json entry;
    entry.set("from", pair.transfer.from);
    entry.set("to", pair.transfer.to);
    entry.set("bytes", pair.transfer.bytes);
    if (pair.ms) entry.set("ms", *pair.ms);
    pairs.push_back(std::move(entry));
  }
  return json.set("pairs", std::move(pairs));
}

/// A plan file's first fields: what is placed where.
Json placement_to_json(const PlanDocument& document) {
  validate(document.task);
  Json json;
  json.set("format", kPlanFormat);
  json.set("task", to_json(document.task));
  json.set("shards", shards_to_json(document));
  if (!document.plan.replicated_tables.empty()) {
    json.set("replicated_tables", replicated_tables_to_json(document));
  }
  return json;
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
  Json json = placement_to_json(document);
  if (document.predicted) json.set("predicted", cost_json(*document.predicted));
  json.set("model", document.model);
  json.set("search", document.search);
  if (!document.warnings.empty()) {
    json.set("warnings", Json::Array(document.warnings.begin(), document.warnings.end()));
  }
  if (document.moves) json.set("moves", moves_json(*document.moves));
  return to_document(json);
}

void write_plan(const PlanDocument& document, const std::string& path) {
  write_file(path, plan_text(document));
}

std::string plan_sha256(const PlanDocument& document) {
  return sha256_hex(to_line(placement_to_json(document)));
}

}  // namespace neuroshard
