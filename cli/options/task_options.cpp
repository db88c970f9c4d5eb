// Tasks from the command line.
#include "cli/options/task_options.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "cli/options/options.h"
#include "cli/streams/output.h"
#include "neuroshard/core/error.h"
#include "neuroshard/core/units.h"
#include "neuroshard/io/task_io.h"
#include "neuroshard/workload/workload.h"

namespace neuroshard::cli {

namespace {

/// A valid task's tables and devices are at fault only on the devices of the option, which errors
/// then name.
Task with_settings_of_options(Task task, const TaskSettings& settings) {
  try {
    return with_settings(std::move(task), settings);
  } catch (const InputError& error) {
    const std::string_view text = error.what();
    const bool is_of_devices = text.starts_with("tables[") || text.starts_with("topology.");
    if (!settings.devices || !is_of_devices) throw;
    throw InputError(fmt::format("with --devices {}: {}", *settings.devices, text));
  }
}

}  // namespace

void add_task_settings(CLI::App& command, TaskOptions& options) {
  command.add_option("--devices", options.devices, "Number of devices")
      ->check(integer_between(1, kMaxWorldSize));
  command
      .add_option("--local-devices", options.local_devices,
                  "Devices per host; all, unless the task file says otherwise")
      ->check(integer_between(1, kMaxWorldSize));
  command.add_option("--memory", options.memory, "Memory of each device for tables, such as 80GiB");
  command
      .add_option("--batch-size", options.batch_size,
                  "Samples over all devices; default the workload's or the task file's")
      ->check(integer_between(1, kMaxBatchSize));
  command.add_option("--optimizer", options.optimizer,
                     "sgd or rowwise_adagrad; default the workload's or the task file's");
}

void add_task_options(CLI::App& command, TaskOptions& options) {
  add_input_option(command, "task", options.file, "Task file (.json)");
  command.add_option("--workload", options.workload,
                     "The tables of a workload instead of a task file");
  command.add_option("--workload-seed", options.workload_seed, "Seed of a generated workload")
      ->check(seed());
  add_task_settings(command, options);
}

TaskSettings settings_of(const TaskOptions& options) {
  TaskSettings settings;
  if (options.devices > 0) settings.devices = options.devices;
  if (options.local_devices > 0) settings.local_devices = options.local_devices;
  if (!options.memory.empty()) settings.memory_bytes = parse_bytes(options.memory, "--memory");
  if (options.batch_size > 0) settings.batch_size = options.batch_size;
  if (!options.optimizer.empty()) {
    settings.optimizer = parse_optimizer(options.optimizer, "--optimizer");
  }
  return settings;
}

Task task_of(const TaskOptions& options) {
  const bool from_file = !options.file.empty();
  if (from_file == !options.workload.empty()) {
    throw InputError(std::string("plan needs a task file or --workload, got ") +
                     (from_file ? "both" : "neither"));
  }
  const TaskSettings settings = settings_of(options);
  if (from_file) return with_settings_of_options(read_task(options.file), settings);
  if (!settings.devices) throw InputError("--workload needs --devices");
  if (!settings.memory_bytes) throw InputError("--workload needs --memory");
  return neuroshard::task_of(find_workload(options.workload, options.workload_seed), settings);
}

}  // namespace neuroshard::cli
