// Settings applied to workloads and tasks.
#include "neuroshard/workload/task_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "neuroshard/core/error.h"

namespace neuroshard {

namespace {

/// Before something is kept for each of them.
void require_number(int devices) {
  if (devices >= 1 && devices <= kMaxWorldSize) return;
  throw InputError("devices", fmt::format("an integer between 1 and {}", kMaxWorldSize),
                   fmt::format("{}", devices));
}

void set_devices(Topology& topology, const TaskSettings& settings) {
  require_number(*settings.devices);
  const bool on_one_host = topology.local_world_size == topology.world_size;
  const std::vector<std::int64_t>& memory = topology.memory_bytes;
  const bool differs =
      std::adjacent_find(memory.begin(), memory.end(), std::not_equal_to<>()) != memory.end();
  if (differs && !settings.memory_bytes && *settings.devices != topology.world_size) {
    throw InputError("memory", "the memory of the new devices, as those of the task differ",
                     "nothing");
  }
  const std::int64_t each = settings.memory_bytes.value_or(memory.empty() ? 0 : memory.front());
  if (*settings.devices != topology.world_size)
    topology.memory_bytes.assign(*settings.devices, each);
  topology.world_size = *settings.devices;
  if (on_one_host) topology.local_world_size = topology.world_size;
}

void set_batch_size(Task& task, std::int64_t batch_size) {
  if (batch_size == task.batch_size) return;
  for (const Table& table : task.tables) {
    if (!table.reuse_histogram) continue;
    throw InputError("batch_size",
                     fmt::format("{}, for which table \"{}\" gives its reuse histogram",
                                 task.batch_size, table.name),
                     fmt::format("{}", batch_size));
  }
  task.batch_size = batch_size;
}

}  // namespace

Task task_of(Workload workload, const TaskSettings& settings) {
  if (!settings.devices) throw InputError("devices", "the number of devices", "nothing");
  if (!settings.memory_bytes) throw InputError("memory", "a size such as 80GiB", "nothing");
  require_number(*settings.devices);
  Task task;
  task.batch_size = settings.batch_size.value_or(workload.batch_size);
  task.optimizer = settings.optimizer.value_or(workload.optimizer);
  task.tables = std::move(workload.tables);
  task.topology.world_size = *settings.devices;
  task.topology.local_world_size = settings.local_devices.value_or(*settings.devices);
  task.topology.memory_bytes.assign(*settings.devices, *settings.memory_bytes);
  validate(task);
  return task;
}

Task with_settings(Task task, const TaskSettings& settings) {
  Topology& topology = task.topology;
  if (settings.devices) set_devices(topology, settings);
  if (settings.local_devices) topology.local_world_size = *settings.local_devices;
  if (settings.memory_bytes) {
    require_number(topology.world_size);
    topology.memory_bytes.assign(topology.world_size, *settings.memory_bytes);
  }
  if (settings.batch_size) set_batch_size(task, *settings.batch_size);
  if (settings.optimizer) task.optimizer = *settings.optimizer;
  validate(task);
  return task;
}

}  // namespace neuroshard
