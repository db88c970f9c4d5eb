// Task files given one by one or as folders, and folders of them written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// All given files, and for each given folder all .json files in it, by name. Throws InputError for
/// a folder that cannot be read or has no such file; whether a file exists and is a task shows when
/// it is read.
[[nodiscard]] std::vector<std::string> find_task_files(const std::vector<std::string>& paths);

/// Writes tasks 0 to `count` - 1 as task-0.json, task-1.json, ..., padded with zeros to the same
/// length, into the folder, which is made if it is missing. `task` makes each of them twice: all
/// are made before the first is written, so that one that cannot be leaves no folder, and none is
/// kept, so that memory does not bound their number. Throws what `task` throws, and InputError if a
/// file cannot be written, or is measured data or a model and not a task, or if the folder has
/// other tasks (task-*.json) than these.
void write_task_files(std::int64_t count, const std::function<Task(std::int64_t)>& task,
                      const std::string& folder);

}  // namespace neuroshard
