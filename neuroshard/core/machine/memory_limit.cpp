// The files of both versions of control groups, and the process's own.
#include "neuroshard/core/machine/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace neuroshard {

namespace {

namespace fs = std::filesystem;

/// What a version calls its files and the field of memory.stat with the page cache that is given up
/// first.
struct Names {
  const char* limit;
  const char* usage;
  const char* cache;
};

constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file"};

/// The number in a file; nothing if there is no file or no number ("max").
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

std::int64_t cache_in(const fs::path& folder, const Names& names) {
  std::ifstream stream(folder / "memory.stat");
  std::string field;
  for (std::int64_t bytes = 0; stream >> field >> bytes;) {
    if (field == names.cache) return bytes;
  }
  return 0;
}

/// Of one group; nothing if it has no limit.
std::optional<std::int64_t> room_in(const fs::path& folder, const Names& names) {
  const std::optional<std::int64_t> limit = number_in(folder / names.limit);
  const std::optional<std::int64_t> usage = number_in(folder / names.usage);
  if (!limit || !usage) return std::nullopt;
  const std::int64_t used = std::max<std::int64_t>(*usage - cache_in(folder, names), 0);
  return std::max<std::int64_t>(*limit - used, 0);
}

/// Of the group at `path` below `mount` and all that it lies in.
std::optional<std::int64_t> least_room(const fs::path& mount, const std::string& path,
                                       const Names& names) {
  std::optional<std::int64_t> least = room_in(mount, names);
  fs::path folder = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    folder /= part;
    if (const auto room = room_in(folder, names)) least = std::min(least.value_or(*room), *room);
  }
  return least;
}

/// Of the machine; 0 if it does not say.
std::int64_t machine_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  std::string unit;
  while (info >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(info, unit);
  }
  return 0;
}

}  // namespace

std::optional<std::int64_t> control_group_room(const std::string& groups, const std::string& root) {
  std::ifstream list(groups);
  std::optional<std::int64_t> least;
  // "0::/path" is the one group of version 2, "4:cpu,memory:/path" one of version 1.
  for (std::string line; std::getline(list, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    std::optional<std::int64_t> room;
    if (controllers == ",,") {
      room = least_room(root, path, kVersion2);
    } else if (controllers.find(",memory,") != std::string::npos) {
      room = least_room(fs::path(root) / "memory", path, kVersion1);
    }
    if (room) least = std::min(least.value_or(*room), *room);
  }
  return least;
}

std::int64_t address_space_bytes() {
  return number_in("/proc/self/statm").value_or(0) * ::sysconf(_SC_PAGESIZE);
}

std::optional<std::int64_t> address_space_room() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const auto most = static_cast<std::int64_t>(limit.rlim_cur);
  return std::max<std::int64_t>(most - address_space_bytes(), 0);
}

std::int64_t available_memory_bytes() {
  std::int64_t available = machine_memory_bytes();
  for (const std::optional<std::int64_t>& limit : {control_group_room(), address_space_room()}) {
    if (!limit) continue;
    const std::int64_t room = std::max<std::int64_t>(*limit, 1);  // 0 would be no answer
    available = available > 0 ? std::min(available, room) : room;
  }
  return available;
}

}  // namespace neuroshard
