// Folders of task files.
#include "neuroshard/io/task_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "neuroshard/core/error.h"
#include "neuroshard/core/text/utf8.h"
#include "neuroshard/io/file_detail.h"
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
  if (error) fail_read(folder, error.value(), "a readable folder");
  if (files.empty()) throw InputError(folder, "a folder with task files (.json)", "none in it");
  return files;
}

/// The names of tasks 0 to `count` - 1.
class TaskNames {
 public:
  explicit TaskNames(std::int64_t count)
      : count_(count), width_(std::to_string(std::max<std::int64_t>(count - 1, 0)).size()) {}

  [[nodiscard]] std::string name(std::int64_t number) const {
    return fmt::format("{}{:0{}}{}", kPrefix, number, width_, kSuffix);
  }

  /// "task-0.json to task-9.json"
  [[nodiscard]] std::string text() const {
    return count_ > 1 ? fmt::format("{} to {}", name(0), name(count_ - 1)) : name(0);
  }

  /// Whether this is the name of a task, but of none of these.
  [[nodiscard]] bool is_of_others(std::string_view file) const {
    if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) return false;
    if (file.size() != kPrefix.size() + width_ + kSuffix.size()) return true;
    std::int64_t number = 0;
    for (const char digit : file.substr(kPrefix.size(), width_)) {
      if (digit < '0' || digit > '9') return true;
      number = 10 * number + (digit - '0');
    }
    return number >= count_;
  }

 private:
  static constexpr std::string_view kPrefix = "task-";
  static constexpr std::string_view kSuffix = ".json";

  std::int64_t count_;
  std::size_t width_;
};

/// Throws InputError for a folder with tasks beside those to be written, as of a run with another
/// number of them: whoever is given the folder would take all for one set.
void refuse_other_tasks(const std::string& folder, const TaskNames& names) {
  std::error_code error;
  std::vector<std::string> others;
  for (const std::string& path : paths_in(folder, error)) {
    std::string name = fs::path(path).filename().string();
    if (names.is_of_others(name)) others.push_back(std::move(name));
  }
  // Whether there can be a folder shows when it is made.
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) return;
  if (error) fail_read(folder, error.value(), "a readable folder");
  if (others.empty()) return;
  throw InputError(folder, "a folder without other tasks than " + names.text(),
                   others.size() == 1
                       ? others.front()
                       : fmt::format("{} and {} more", others.front(), others.size() - 1));
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
  const TaskNames names(count);
  const auto file = [&](std::int64_t i) { return folder + "/" + names.name(i); };
  refuse_other_tasks(folder, names);
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
