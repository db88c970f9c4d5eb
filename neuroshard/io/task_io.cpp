// Tasks to and from JSON.
#include "neuroshard/io/task_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/io/file.h"
#include "neuroshard/io/json/json_reader.h"

namespace neuroshard {

namespace {

AccessClass access_class_from_json(const JsonReader& reader) {
  if (reader.array_size() != 2) reader.fail("a pair [num_embeddings, access_share]");
  return {reader.element(0).integer(), reader.element(1).number()};
}

IndexDistribution index_distribution_from_json(const JsonReader& reader) {
  reader.allow_fields({"zipf_exponent", "access_classes"});
  const auto exponent = reader.optional_field("zipf_exponent");
  const auto classes = reader.optional_field("access_classes");
  if (exponent.has_value() == classes.has_value()) {
    reader.fail("one of zipf_exponent and access_classes", exponent ? "both" : "neither");
  }
  IndexDistribution distribution;
  if (exponent) {
    distribution.zipf_exponent = exponent->number();
    return distribution;
  }
  if (classes->array_size() == 0) classes->fail("at least one [num_embeddings, access_share]");
  for (std::size_t i = 0; i < classes->array_size(); ++i) {
    distribution.access_classes.push_back(access_class_from_json(classes->element(i)));
  }
  return distribution;
}

std::vector<RowAccessPoint> row_access_from_json(const JsonReader& reader) {
  if (reader.array_size() == 0) reader.fail("at least one [share_of_rows, share_of_accesses]");
  std::vector<RowAccessPoint> points;
  for (std::size_t i = 0; i < reader.array_size(); ++i) {
    const JsonReader point = reader.element(i);
    if (point.array_size() != 2) point.fail("a pair [share_of_rows, share_of_accesses]");
    points.push_back({point.element(0).number(), point.element(1).number()});
  }
  return points;
}

/// Where the hot rows are: `row_order` or `row_access` or neither.
void read_row_order(const JsonReader& reader, Table& table) {
  const auto order = reader.optional_field("row_order");
  const auto access = reader.optional_field("row_access");
  if (order && access) reader.fail("row_order or row_access", "both");
  if (order) {
    const auto known = row_order_from_string(order->text());
    if (!known) order->fail("\"hashed\" or \"by_frequency\"");
    table.row_order = *known;
  }
  if (access) table.row_access = row_access_from_json(*access);
}

/// Fields that are 0 where they are not given, and not written then.
template <typename T>
auto optional_integers(T& table) {
  return std::array{std::pair{"min_shard_columns", &table.min_shard_columns},
                    std::pair{"min_shard_rows", &table.min_shard_rows},
                    std::pair{"extra_bytes_per_shard", &table.extra_bytes_per_shard},
                    std::pair{"extra_bytes_per_column", &table.extra_bytes_per_column}};
}

std::vector<int> devices_from_json(const JsonReader& reader) {
  if (reader.array_size() == 0) reader.fail("at least one device");
  std::vector<int> devices;
  for (std::size_t i = 0; i < reader.array_size(); ++i) {
    devices.push_back(static_cast<int>(reader.element(i).integer(0, kMaxWorldSize - 1)));
  }
  return devices;
}

Table table_from_json(const JsonReader& reader) {
  reader.allow_fields({"name", "num_embeddings", "embedding_dim", "pooling_factor", "data_type",
                       "reuse_histogram", "index_distribution", "row_order", "row_access",
                       "min_shard_columns", "min_shard_rows", "allow", "extra_bytes_per_shard",
                       "extra_bytes_per_column", "num_features", "devices", "same_device_as"});
  Table table;
  table.name = reader.field("name").text();
  table.num_embeddings = reader.field("num_embeddings").integer();
  table.embedding_dim = reader.field("embedding_dim").integer();
  table.pooling_factor = reader.field("pooling_factor").number();
  if (const auto type = reader.optional_field("data_type")) {
    table.data_type = data_type_from_json(*type);
  }
  if (const auto histogram = reader.optional_field("reuse_histogram")) {
    table.reuse_histogram = reuse_histogram_from_json(*histogram);
  }
  if (const auto distribution = reader.optional_field("index_distribution")) {
    table.index_distribution = index_distribution_from_json(*distribution);
  }
  read_row_order(reader, table);
  for (const auto& [name, number] : optional_integers(table)) {
    if (const auto field = reader.optional_field(name)) *number = field->integer();
  }
  if (const auto features = reader.optional_field("num_features")) {
    table.num_features = features->integer();
  }
  if (const auto allow = reader.optional_field("allow")) table.allow = cuts_from_json(*allow);
  if (const auto devices = reader.optional_field("devices")) {
    table.devices = devices_from_json(*devices);
  }
  if (const auto other = reader.optional_field("same_device_as")) {
    table.same_device_as = other->text();
    if (table.same_device_as.empty()) other->fail("the name of another table of the task");
  }
  return table;
}

std::vector<std::int64_t> memory_from_json(const JsonReader& reader, int world_size) {
  if (!reader.value().array()) {
    if (!std::holds_alternative<std::int64_t>(reader.value().value())) {
      reader.fail("an integer or an array of one integer per device");
    }
    std::vector<std::int64_t> equal(static_cast<std::size_t>(world_size), reader.integer());
    return equal;
  }
  std::vector<std::int64_t> memory;
  for (std::size_t device = 0; device < reader.array_size(); ++device) {
    memory.push_back(reader.element(device).integer());
  }
  return memory;
}

Topology topology_from_json(const JsonReader& reader) {
  reader.allow_fields({"world_size", "local_world_size", "memory_bytes", "interconnect"});
  Topology topology;
  topology.world_size = static_cast<int>(reader.field("world_size").integer(1, kMaxWorldSize));
  topology.local_world_size = topology.world_size;
  if (const auto local = reader.optional_field("local_world_size")) {
    topology.local_world_size = static_cast<int>(local->integer(1, kMaxWorldSize));
  }
  topology.memory_bytes = memory_from_json(reader.field("memory_bytes"), topology.world_size);
  if (const auto interconnect = reader.optional_field("interconnect")) {
    topology.interconnect = interconnect->text();
  }
  return topology;
}

Json to_json(const IndexDistribution& distribution) {
  if (distribution.access_classes.empty()) {
    return Json().set("zipf_exponent", distribution.zipf_exponent);
  }
  Json::Array classes;
  for (const AccessClass& access_class : distribution.access_classes) {
    classes.push_back(Json::Array{access_class.num_embeddings, access_class.access_share});
  }
  return Json().set("access_classes", std::move(classes));
}

Json to_json(const std::vector<RowAccessPoint>& points) {
  Json::Array pairs;
  for (const RowAccessPoint& point : points) {
    pairs.push_back(Json::Array{point.row_share, point.access_share});
  }
  return pairs;
}

Json to_json(const Table& table) {
  Json json;
  json.set("name", table.name);
  json.set("num_embeddings", table.num_embeddings);
  json.set("embedding_dim", table.embedding_dim);
  json.set("pooling_factor", table.pooling_factor);
  json.set("data_type", to_string(table.data_type));
  if (table.reuse_histogram)
    json.set("reuse_histogram", reuse_histogram_to_json(*table.reuse_histogram));
  if (table.index_distribution) json.set("index_distribution", to_json(*table.index_distribution));
  if (table.row_order != RowOrder::hashed) json.set("row_order", to_string(table.row_order));
  if (!table.row_access.empty()) json.set("row_access", to_json(table.row_access));
  for (const auto& [name, number] : optional_integers(table)) {
    if (*number != 0) json.set(name, *number);
  }
  if (table.num_features != 1) json.set("num_features", table.num_features);
  if (table.allow != Cuts{}) json.set("allow", to_json(table.allow));
  if (!table.devices.empty()) {
    json.set("devices", Json::Array(table.devices.begin(), table.devices.end()));
  }
  if (!table.same_device_as.empty()) json.set("same_device_as", table.same_device_as);
  return json;
}

Json to_json(const Topology& topology) {
  Json json;
  json.set("world_size", topology.world_size);
  json.set("local_world_size", topology.local_world_size);
  const std::vector<std::int64_t>& memory = topology.memory_bytes;
  if (std::adjacent_find(memory.begin(), memory.end(), std::not_equal_to<>()) == memory.end()) {
    json.set("memory_bytes", memory.front());
  } else {
    json.set("memory_bytes", Json::Array(memory.begin(), memory.end()));
  }
  if (!topology.interconnect.empty()) json.set("interconnect", topology.interconnect);
  return json;
}

}  // namespace

ReuseHistogram reuse_histogram_from_json(const JsonReader& reader) {
  if (reader.array_size() != kReuseBins) {
    reader.fail(fmt::format("an array of {} shares", kReuseBins));
  }
  ReuseHistogram histogram{};
  for (std::size_t bin = 0; bin < kReuseBins; ++bin) histogram[bin] = reader.element(bin).number();
  return histogram;
}

Json reuse_histogram_to_json(const ReuseHistogram& histogram) {
  return Json::Array(histogram.begin(), histogram.end());
}

Json to_json(const Cuts& cuts) {
  Json::Array names;
  for (const auto& [name, allowed] : kCutNames) {
    if (cuts.*allowed) names.emplace_back(name);
  }
  return names;
}

Cuts cuts_from_json(const JsonReader& reader) {
  Cuts cuts{false, false, false};
  for (std::size_t i = 0; i < reader.array_size(); ++i) {
    const JsonReader name = reader.element(i);
    const auto cut = std::find_if(kCutNames.begin(), kCutNames.end(),
                                  [&](const CutName& known) { return name.text() == known.name; });
    if (cut == kCutNames.end()) name.fail("\"columns\", \"rows\" or \"replicas\"");
    if (cuts.*cut->allowed) name.fail("each cut once", fmt::format("\"{}\" again", cut->name));
    cuts.*cut->allowed = true;
  }
  return cuts;
}

DataType data_type_from_json(const JsonReader& reader) {
  const auto type = data_type_from_string(reader.text());
  if (!type) reader.fail("\"fp32\" or \"fp16\"");
  return *type;
}

Optimizer optimizer_from_json(const JsonReader& reader) {
  const auto optimizer = optimizer_from_string(reader.text());
  if (!optimizer) reader.fail("\"sgd\" or \"rowwise_adagrad\"");
  return *optimizer;
}

Task task_from_json(const JsonReader& reader) {
  reader.expect_format(kTaskFormat);
  reader.allow_fields({"format", "batch_size", "optimizer", "tables", "topology", "allow"});
  Task task;
  task.batch_size = reader.field("batch_size").integer();
  task.optimizer = optimizer_from_json(reader.field("optimizer"));
  if (const auto allow = reader.optional_field("allow")) task.allow = cuts_from_json(*allow);
  const JsonReader tables = reader.field("tables");
  for (std::size_t i = 0; i < tables.array_size(); ++i) {
    task.tables.push_back(table_from_json(tables.element(i)));
  }
  task.topology = topology_from_json(reader.field("topology"));
  reader.check([&] { validate(task); });
  return task;
}

Json to_json(const Task& task) {
  Json json;
  json.set("format", kTaskFormat);
  json.set("batch_size", task.batch_size);
  json.set("optimizer", to_string(task.optimizer));
  if (task.allow != Cuts{}) json.set("allow", to_json(task.allow));
  Json::Array tables;
  for (const Table& table : task.tables) tables.push_back(to_json(table));
  json.set("tables", std::move(tables));
  json.set("topology", to_json(task.topology));
  return json;
}

Task parse_task(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  return task_from_json(JsonReader(document, file));
}

Task read_task(const std::string& path) { return parse_task(read_file(path), path); }

std::string task_text(const Task& task) {
  validate(task);
  return to_document(to_json(task));
}

void write_task(const Task& task, const std::string& path) { write_file(path, task_text(task)); }

}  // namespace neuroshard
