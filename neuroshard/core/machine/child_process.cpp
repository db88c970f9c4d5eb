// Work in a process of its own: fork, a pipe, and the wait for its end.
#include "neuroshard/core/machine/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace neuroshard {

namespace {

/// All that is written to a pipe until its other end is closed.
std::string text_of_pipe(int descriptor) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

std::optional<EndedChild> run_in_child(const std::function<int(int descriptor)>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::_exit(work(ends[1]));
  }
  ::close(ends[1]);
  EndedChild ended;
  if (child > 0) ended.written = text_of_pipe(ends[0]);
  ::close(ends[0]);
  if (child < 0) return std::nullopt;
  int status = 0;
  pid_t waited = -1;
  do {
    waited = ::waitpid(child, &status, 0);
  } while (waited < 0 && errno == EINTR);
  // Nobody knows how it ended where the caller has signals of children ignored.
  if (waited == child && WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  return ended;
}

}  // namespace neuroshard
