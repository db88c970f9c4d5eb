// Writing through the system, and from errno to the errors of this library; used by io only.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "neuroshard/core/error.h"

namespace neuroshard {

inline std::string system_reason(int error) { return std::generic_category().message(error); }

/// Writes all of it, however the system divides it. Returns 0 or the error's number.
inline int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Throws for a failed write of `size` bytes.
[[noreturn]] inline void fail_write(const std::string& path, std::size_t size, int error) {
  if (error == EIO) {
    throw MachineError(
        fmt::format("{}: expected to write {} bytes, got {}", path, size, system_reason(error)));
  }
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    throw InputError(path, fmt::format("room to write {} bytes", size), system_reason(error));
  }
  throw InputError(path, "a writable file", system_reason(error));
}

}  // namespace neuroshard
