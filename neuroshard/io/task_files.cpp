// Folders of task files.
#include "neuroshard/io/task_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "neuroshard/core/error.h"
#include "neuroshard/core/utf8.h"
#include "neuroshard/io/folder.h"
#include "neuroshard/io/json/json.h"
#include "neuroshard/io/kept_data.h"
#include "neuroshard/io/task_io.h"

namespace neuroshard {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> json_files_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (const std::string& path : paths_in(folder, error)) {
    if (fs::path(path).extension() == ".json") files.push_back(path);
  }
  if (error == std::errc::io_error) {
    throw MachineError(fmt::format("{}: expected a readable folder, got {}", folder,
                                   std::generic_category().message(error.value())));
  }
  if (error) throw InputError(folder, "a readable folder", error.message());
  if (files.empty()) throw InputError(folder, "a folder with task files (.json)", "none in it");
  return files;
}

}  // namespace

std::vector<std::string> find_task_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::vector<std::string> inside = json_files_in(path);
    for (const std::string& file : inside) {
      if (is_utf8(file)) continue;
      throw InputError(path, "names in UTF-8, which results record", in_quotes(file));
    }
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

void write_task_files(std::int64_t count, const std::function<Task(std::int64_t)>& task,
                      const std::string& folder) {
  const std::size_t width = std::to_string(std::max<std::int64_t>(count - 1, 0)).size();
  const auto file = [&](std::int64_t i) {
    return fmt::format("{}/task-{:0{}}.json", folder, i, width);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    (void)task(i);
    refuse_to_replace_kept_data(file(i), "another folder");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw InputError(folder, "a folder to write to", error.message());
  for (std::int64_t i = 0; i < count; ++i) write_task(task(i), file(i));
}

}  // namespace neuroshard
