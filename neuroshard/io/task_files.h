// Task files given one by one or as folders, and folders of them written.
#pragma once

#include <string>
#include <vector>

#include "neuroshard/core/task.h"

namespace neuroshard {

/// All given files, and for each given folder all .json files in it, by name. Throws InputError for
/// a folder that cannot be read or has no such file; whether a file exists and is a task shows when
/// it is read.
[[nodiscard]] std::vector<std::string> find_task_files(const std::vector<std::string>& paths);

/// Writes the tasks as task-0.json, task-1.json, ..., padded with zeros to the same length, into
/// the folder, which is made if it is missing. Throws InputError if that fails.
void write_task_files(const std::vector<Task>& tasks, const std::string& folder);

}  // namespace neuroshard
