// A sharding task: the checks that span tables and devices.
#include "neuroshard/core/task.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "neuroshard/core/error.h"
#include "neuroshard/core/table_pins.h"

namespace neuroshard {

void validate(const Topology& topology) {
  if (topology.world_size < 1 || topology.world_size > kMaxWorldSize) {
    throw InputError("topology.world_size",
                     fmt::format("an integer between 1 and {}", kMaxWorldSize),
                     fmt::format("{}", topology.world_size));
  }
  if (topology.local_world_size < 1 || topology.world_size % topology.local_world_size != 0) {
    throw InputError("topology.local_world_size",
                     fmt::format("a divisor of world_size = {}", topology.world_size),
                     fmt::format("{}", topology.local_world_size));
  }
  if (topology.memory_bytes.size() != static_cast<std::size_t>(topology.world_size)) {
    throw InputError("topology.memory_bytes",
                     fmt::format("one capacity for each of {} devices", topology.world_size),
                     fmt::format("{}", topology.memory_bytes.size()));
  }
  for (std::size_t device = 0; device < topology.memory_bytes.size(); ++device) {
    const std::int64_t bytes = topology.memory_bytes[device];
    if (bytes < 1 || bytes > (std::int64_t{1} << 60)) {
      throw InputError(fmt::format("topology.memory_bytes[{}]", device),
                       "an integer between 1 and 2^60", fmt::format("{}", bytes));
    }
  }
}

void validate(const Task& task) {
  if (task.batch_size < 1 || task.batch_size > kMaxBatchSize) {
    throw InputError("batch_size", fmt::format("an integer between 1 and {}", kMaxBatchSize),
                     fmt::format("{}", task.batch_size));
  }
  if (task.tables.empty()) throw InputError("tables", "at least one table", "none");
  std::unordered_map<std::string_view, std::size_t> index_by_name;
  for (std::size_t i = 0; i < task.tables.size(); ++i) {
    validate(task.tables[i], fmt::format("tables[{}]", i));
    const auto [other, is_new] = index_by_name.emplace(task.tables[i].name, i);
    if (!is_new) {
      throw InputError(
          fmt::format("tables[{}].name", i), "a name not used before",
          fmt::format("\"{}\", also the name of tables[{}]", task.tables[i].name, other->second));
    }
  }
  validate(task.topology);
  validate_pins(task);
}

std::vector<Cuts> allowed_cuts(const Task& task) {
  const TablePins pins(task);
  std::vector<Cuts> allowed;
  allowed.reserve(task.tables.size());
  for (std::size_t t = 0; t < task.tables.size(); ++t) {
    const auto table = static_cast<int>(t);
    Cuts cuts = task.allow & task.tables[t].allow;
    if (pins.group_of(table) != nullptr) cuts = {false, false, false};
    if (!pins.devices_of(table).empty()) cuts.replicas = false;
    allowed.push_back(cuts);
  }
  return allowed;
}

}  // namespace neuroshard
