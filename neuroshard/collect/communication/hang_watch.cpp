// A child that looks once a second at how much of a processor its parent has used, and whether it
// is still there.
#include "neuroshard/collect/communication/hang_watch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"

namespace neuroshard {

namespace {

constexpr const char* kHangVariable = "NEUROSHARD_HANG_LIMIT";
/// mpirun takes some seconds to end the others, all of which is to take less than 30.
constexpr int kHangSeconds = 15;
/// So little in a whole limit is no work: threads of libraries that look around now and then.
constexpr std::int64_t kIdleNanoseconds = 2'000'000;

/// What the child is told, both blocked and waited for.
constexpr int kParentHasEnded = SIGUSR1;
constexpr int kEndIsExpected = SIGUSR2;

// From here to the constructor: what runs in the child of a process that may have threads, so only
// what signal handlers may do, and no memory is asked for.

/// Of a processor, over all threads of a process; -1 if it is gone.
std::int64_t used_nanoseconds(pid_t process) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return -1;
  return static_cast<std::int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

/// The state of a process, as in ps: 'S', 'T', ...; 0 if it is not known.
char state_in(const char* stat_path) {
  const int descriptor = ::open(stat_path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  std::array<char, 512> text{};
  const ssize_t size = ::read(descriptor, text.data(), text.size());
  ::close(descriptor);
  const std::string_view line(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const std::size_t name_end = line.rfind(')');  // of a name that may have any characters
  return name_end == std::string_view::npos || name_end + 2 >= line.size() ? '\0'
                                                                           : line[name_end + 2];
}

void say(std::string_view line) { (void)!::write(STDERR_FILENO, line.data(), line.size()); }

/// The signals of above.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, kParentHasEnded);
    ::sigaddset(&set_, kEndIsExpected);
    (void)::sigprocmask(SIG_BLOCK, &set_, nullptr);
    (void)::prctl(PR_SET_PDEATHSIG, kParentHasEnded);
  }

  /// True if that many seconds have passed without a signal.
  bool nothing_for(int seconds) {
    const timespec time{.tv_sec = seconds, .tv_nsec = 0};
    const int signal = ::sigtimedwait(&set_, nullptr, &time);
    end_is_expected_ = end_is_expected_ || signal == kEndIsExpected;
    return signal < 0 && errno == EAGAIN;
  }

  /// By all that has been said until now.
  bool end_is_expected() {
    while (!nothing_for(0)) continue;
    return end_is_expected_;
  }

 private:
  sigset_t set_{};
  bool end_is_expected_ = false;
};

[[noreturn]] void watch_parent(pid_t parent, const char* stat_path, std::string_view hung,
                               std::string_view died, int limit_seconds) {
  Signals signals;
  std::int64_t used = used_nanoseconds(parent);
  int still_for = 0;
  while (::getppid() == parent) {
    if (!signals.nothing_for(1)) continue;
    const std::int64_t used_now = used_nanoseconds(parent);
    const char state = state_in(stat_path);
    const bool is_still =
        used_now - used < kIdleNanoseconds && (state == 'T' || state == 'S' || state == 0);
    still_for = is_still ? still_for + 1 : 0;
    if (!is_still) used = used_now;
    if (still_for < limit_seconds) continue;
    if (used_now < 0 || ::getppid() != parent) break;
    say(hung);
    (void)::kill(parent, SIGKILL);
    ::_exit(0);
  }
  if (!signals.end_is_expected()) say(died);
  ::_exit(0);
}

}  // namespace

int hang_limit_seconds() {
  const char* given = std::getenv(kHangVariable);
  if (given == nullptr || *given == '\0') return kHangSeconds;
  constexpr double kMost = 1e9;
  return static_cast<int>(std::ceil(std::min(parse_seconds(given, kHangVariable), kMost)));
}

HangWatch::HangWatch(const LastWords& last_words, int limit_seconds) {
  if (limit_seconds <= 0) return;
  const pid_t parent = ::getpid();
  const std::string stat_path = "/proc/" + std::to_string(parent) + "/stat";
  const std::string hung = printable(last_words.hung) + "\n";
  const std::string died = printable(last_words.died) + "\n";
  watcher_ = ::fork();
  if (watcher_ == 0) watch_parent(parent, stat_path.c_str(), hung, died, limit_seconds);
}

HangWatch::~HangWatch() {
  if (watcher_ <= 0) return;
  (void)::kill(watcher_, SIGKILL);
  while (::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void HangWatch::expect_end() const {
  if (watcher_ > 0) (void)::kill(watcher_, kEndIsExpected);
}

}  // namespace neuroshard
