// Work in a process of its own, for libraries that end the process that they run in.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace neuroshard {

/// How a process ended.
struct EndedChild {
  /// Nothing where a signal ended it, or where SIGCHLD is ignored and nobody knows.
  std::optional<int> exit_code;
  /// All that it wrote to its descriptor.
  std::string written;
};

/// Calls `work` in a copy of this process, with a descriptor to write to, and waits for its end.
/// The copy's exit code is what `work` returns; it must not throw. Only the calling thread is
/// copied. Nothing where the system gives no pipe or no process.
std::optional<EndedChild> run_in_child(const std::function<int(int descriptor)>& work);

}  // namespace neuroshard
