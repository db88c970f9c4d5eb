// A choice among listed options and its answer as JSON.
#include "neuroshard/search/options/option_json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/io/json/json_reader.h"
#include "neuroshard/io/sample_io.h"

namespace neuroshard {

namespace {

constexpr std::int64_t kMostDevicesRead = 65'536;
constexpr std::int64_t kMostShards = 1'048'576;

std::optional<ShardPlacement> placement_from(std::string_view name) {
  for (int i = 0; i < kNumShardPlacements; ++i) {
    const auto placement = static_cast<ShardPlacement>(i);
    if (to_string(placement) == name) return placement;
  }
  return std::nullopt;
}

MemoryKind memory_from_json(const JsonReader& reader) {
  reader.allow_fields({"name", "bytes"});
  MemoryKind memory{reader.field("name").text(), {}};
  const JsonReader bytes = reader.field("bytes");
  for (std::size_t d = 0; d < bytes.array_size(); ++d) {
    memory.bytes.push_back(bytes.element(d).integer());
  }
  return memory;
}

/// Equal shards in a row: their number, cost and bytes of each kind of memory.
void add_shards(const JsonReader& reader, std::size_t num_memories, ShardingChoice& option) {
  if (reader.array_size() != 2 + num_memories) {
    reader.fail("a number of shards, a cost and bytes for each memory");
  }
  const JsonReader count = reader.element(0);
  const JsonReader cost = reader.element(1);
  OptionShard shard;
  shard.cost_ms = time_from_json(cost, /*zero_allowed=*/true);
  for (std::size_t k = 0; k < num_memories; ++k) {
    const JsonReader bytes = reader.element(2 + k);
    shard.bytes[k] = bytes.integer(0);
  }
  const auto number = static_cast<std::size_t>(count.integer(1, kMostShards));
  option.shards.insert(option.shards.end(), number, shard);
}

ShardingChoice option_from_json(const JsonReader& reader, std::size_t num_memories) {
  reader.allow_fields({"placement", "shards"});
  ShardingChoice option;
  const JsonReader name = reader.field("placement");
  const auto placement = placement_from(name.text());
  if (!placement) {
    name.fail("any_device, distinct_devices, devices_of_one_host, whole_hosts or all_devices");
  }
  option.placement = *placement;
  const JsonReader shards = reader.field("shards");
  for (std::size_t i = 0; i < shards.array_size(); ++i) {
    add_shards(shards.element(i), num_memories, option);
  }
  return option;
}

OptionTable table_from_json(const JsonReader& reader, std::size_t num_memories) {
  reader.allow_fields({"name", "options"});
  OptionTable table{reader.field("name").text(), {}};
  const JsonReader options = reader.field("options");
  for (std::size_t o = 0; o < options.array_size(); ++o) {
    table.options.push_back(option_from_json(options.element(o), num_memories));
  }
  return table;
}

}  // namespace

OptionTask parse_option_task(const std::string& text, const std::string& location) {
  const Json document = parse_json(text, location);
  const JsonReader root(document, location);
  root.expect_format(kOptionTaskFormat);
  root.allow_fields({"format", "world_size", "local_world_size", "memories", "load_ms", "tables"});
  OptionTask task;
  task.world_size = static_cast<int>(root.field("world_size").integer(1, kMostDevicesRead));
  task.local_world_size =
      static_cast<int>(root.field("local_world_size").integer(1, kMostDevicesRead));
  const JsonReader memories = root.field("memories");
  for (std::size_t k = 0; k < memories.array_size(); ++k) {
    task.memories.push_back(memory_from_json(memories.element(k)));
  }
  if (task.memories.size() > kMaxMemoryKinds) memories.fail("at most 4 memories");
  if (const auto load = root.optional_field("load_ms")) {
    for (std::size_t d = 0; d < load->array_size(); ++d) {
      task.load_ms.push_back(time_from_json(load->element(d), /*zero_allowed=*/true));
    }
  }
  const JsonReader tables = root.field("tables");
  for (std::size_t t = 0; t < tables.array_size(); ++t) {
    task.tables.push_back(table_from_json(tables.element(t), task.memories.size()));
  }
  root.check([&] { require_valid(task); });
  return task;
}

Json to_json(const OptionPlan& plan) {
  Json::Array choices;
  for (const ChosenOption& chosen : plan.chosen) {
    Json::Array devices;
    for (const int device : chosen.devices) devices.emplace_back(device);
    choices.push_back(
        Json::Object{{"option", chosen.option}, {"devices", Json(std::move(devices))}});
  }
  return Json::Object{
      {"format", kOptionPlanFormat},
      {"cost_ms", plan.cost_ms},
      {"lower_bound_ms", plan.lower_bound_ms},
      {"choices", Json(std::move(choices))},
      {"statistics", Json::Object{{"steps", plan.steps}, {"accepted", plan.accepted}}}};
}

}  // namespace neuroshard
