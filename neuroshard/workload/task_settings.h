// Tasks from workloads and other tasks: the devices, batch size and optimizer that are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "neuroshard/core/task.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard {

/// What a task is to have; what is not given stays what it is.
struct TaskSettings {
  std::optional<int> devices{};
  std::optional<int> local_devices{};          ///< devices per host
  std::optional<std::int64_t> memory_bytes{};  ///< of each device
  std::optional<std::int64_t> batch_size{};    ///< samples over all devices
  std::optional<Optimizer> optimizer{};
};

/// The workload's tables on devices, which must be given, as must their memory; all on one host
/// unless `local_devices` says otherwise. Throws InputError if they are not given, or the task is
/// not valid.
[[nodiscard]] Task task_of(Workload workload, const TaskSettings& settings);

/// The task on other devices, or with another batch size or optimizer. A new number of devices
/// keeps the devices per host (if all were on one host, they are again). Throws InputError if that
/// does not divide them, if devices of different memory are to become others and no memory is
/// given, or if the batch size is to change and a table has a reuse histogram, which holds for one
/// alone.
[[nodiscard]] Task with_settings(Task task, const TaskSettings& settings);

}  // namespace neuroshard
