// Folders, by the C library.
#include "neuroshard/io/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace neuroshard {

std::vector<std::string> paths_in(const std::string& folder, std::error_code& error) {
  error.clear();
  const auto close = [](DIR* opened) { (void)::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> opened(::opendir(folder.c_str()), close);
  if (!opened) {
    error.assign(errno, std::generic_category());
    return {};
  }
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  std::vector<std::string> paths;
  for (;;) {
    errno = 0;  // what tells an error from the end
    const dirent* entry = ::readdir(opened.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") paths.push_back(prefix + std::string(name));
  }
  if (errno != 0) {
    error.assign(errno, std::generic_category());
    return {};
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace neuroshard
