// A process of a run that stands still is ended, so that those that wait for it are not left
// waiting; one that dies is named.
#pragma once

#include <sys/types.h>

#include <string>

namespace neuroshard {

/// Seconds for which a process may stand still: 15, or what the environment variable
/// NEUROSHARD_HANG_LIMIT says, e.g. "2min". Throws InputError for a variable that is no time.
[[nodiscard]] int hang_limit_seconds();

/// Ends this process by SIGKILL if, while the object lives, it has used no processor for
/// `limit_seconds` (0: for ever) and is stopped or asleep; `LastWords::hung` is its line on stderr
/// then. A process that computes, waits for a message (which is a loop), waits for a disk or is
/// looked at by a debugger does not stand still. One that is started by mpirun is then reported by
/// it, with its rank, and the others are ended.
///
/// If this process ends in any other way while the object lives, `LastWords::died` is its line:
/// what waits for a process that has died may end by itself, for lack of it, and mpirun then names
/// the one of them that it comes across first. What is ended together with its whole group, as
/// mpirun ends the others, says nothing.
///
/// The watch is a process of its own, as a stopped one has no thread that could look; it ends with
/// this one. Seconds are those in which the watch itself runs, so that neither a clock that is set
/// nor a machine that sleeps matters. Where no process can be started, nothing is watched.
class HangWatch {
 public:
  struct LastWords {
    std::string hung;
    std::string died;
  };

  HangWatch(const LastWords& last_words, int limit_seconds);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// From here on this process may end without a line: it has said why itself. One that hangs is
  /// still ended.
  void expect_end() const;

 private:
  pid_t watcher_ = -1;
};

}  // namespace neuroshard
