// The memory that a container leaves its processes: the limits of their control groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard {

/// Bytes that this process may still take by the limits of its control groups (cgroups, version 1
/// or 2) and of those that they lie in, page cache that would make room included; nothing where
/// there is no limit. `groups` is the list of the process's groups, `root` where the groups are
/// mounted: a container sees its own group there.
[[nodiscard]] std::optional<std::int64_t> control_group_room(
    const std::string& groups = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");

}  // namespace neuroshard
