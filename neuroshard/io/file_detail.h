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

/// Throws for a file, or what `expected` says, that the system would not let be read.
[[noreturn]] inline void fail_read(const std::string& path, int error,
                                   std::string_view expected = "a readable file") {
  if (error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM) {
    throw MachineError(
        fmt::format("{}: expected {}, got {}", path, expected, system_reason(error)));
  }
  throw InputError(path, std::string(expected), system_reason(error));
}

/// Throws for a file to be written of which the system would not do what `action` says: "to open
/// it". `more` comes after the system's reason.
[[noreturn]] inline void fail_to(std::string_view action, const std::string& path, int error,
                                 std::string_view more = "") {
  const std::string reason = fmt::format("{}{}", system_reason(error), more);
  if (error == EIO) {
    throw MachineError(fmt::format("{}: expected {}, got {}", path, action, reason));
  }
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    throw InputError(path, fmt::format("room {}", action), reason);
  }
  throw InputError(path, "a writable file", reason);
}

/// Throws for a failed write of `size` bytes.
[[noreturn]] inline void fail_write(const std::string& path, std::size_t size, int error) {
  fail_to(fmt::format("to write {} bytes", size), path, error);
}

}  // namespace neuroshard
