// The memory that limits leave this process: those of control groups, which containers are, and of
// address space.
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

/// Bytes of address space that this process has taken; 0 if the system does not say.
[[nodiscard]] std::int64_t address_space_bytes();

/// Bytes of address space that it may still take (RLIMIT_AS, `ulimit -v`); nothing where there is
/// no limit.
[[nodiscard]] std::optional<std::int64_t> address_space_room();

/// Bytes of memory that this process could still take without swapping.
[[nodiscard]] std::int64_t available_memory_bytes();

}  // namespace neuroshard
