// The options that describe a task: a file or a workload, and the devices to plan it on.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "neuroshard/core/task.h"
#include "neuroshard/workload/task_settings.h"

namespace neuroshard::cli {

struct TaskOptions {
  std::string file;
  std::string workload;
  std::uint64_t workload_seed = 0;
  int devices = 0;
  int local_devices = 0;
  std::string memory;
  std::int64_t batch_size = 0;
  std::string optimizer;
};

/// `--devices`, `--local-devices`, `--memory`, `--batch-size` and `--optimizer`.
void add_task_settings(CLI::App& command, TaskOptions& options);

/// A task file as the argument `task`, or `--workload`; and the settings.
void add_task_options(CLI::App& command, TaskOptions& options);

[[nodiscard]] TaskSettings settings_of(const TaskOptions& options);

/// Throws InputError unless there is either a file or a workload.
[[nodiscard]] Task task_of(const TaskOptions& options);

}  // namespace neuroshard::cli
