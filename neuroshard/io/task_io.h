// Sharding tasks as JSON files, format "neuroshard/task/1" (docs/formats.md).
#pragma once

#include <string>
#include <string_view>

#include "neuroshard/core/task.h"
#include "neuroshard/io/json/json.h"

namespace neuroshard {

class JsonReader;

inline constexpr std::string_view kTaskFormat = "neuroshard/task/1";

/// Throws InputError "file: place: expected ..., got ..." unless the file is a valid task.
[[nodiscard]] Task read_task(const std::string& path);

/// As `read_task`; `file` names the text in errors.
[[nodiscard]] Task parse_task(std::string_view text, const std::string& file);

/// Writes a valid task (InputError if it is not) so that it reads back bit for bit.
void write_task(const Task& task, const std::string& path);
[[nodiscard]] std::string task_text(const Task& task);

/// For formats that contain a task.
[[nodiscard]] Task task_from_json(const JsonReader& reader);
[[nodiscard]] Json to_json(const Task& task);

/// Parts of tables that other formats share. The reuse histogram must have 17 shares; it is judged
/// by core's `validate`.
[[nodiscard]] ReuseHistogram reuse_histogram_from_json(const JsonReader& reader);
[[nodiscard]] Json reuse_histogram_to_json(const ReuseHistogram& histogram);
/// From the names of those that are allowed.
[[nodiscard]] Cuts cuts_from_json(const JsonReader& reader);
[[nodiscard]] Json to_json(const Cuts& cuts);
[[nodiscard]] DataType data_type_from_json(const JsonReader& reader);
[[nodiscard]] Optimizer optimizer_from_json(const JsonReader& reader);

}  // namespace neuroshard
