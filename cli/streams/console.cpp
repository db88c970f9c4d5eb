// stderr, written past fmt::print, which throws where nothing can be written.
#include "cli/streams/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "neuroshard/core/text/printable.h"

namespace neuroshard::cli {

namespace {

/// The state of stderr, which a process has once.
struct Console {
  std::mutex mutex;  ///< progress may come from another thread than messages
  Verbosity verbosity = Verbosity::normal;
  bool shows_progress = false;
};

Console& console() {
  static Console of_process;
  return of_process;
}

constexpr std::string_view kToLineStart = "\r\x1b[K";  // and clear it

void write_text(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

/// The mutex is held.
void wipe(Console& held) {
  if (!held.shows_progress) return;
  held.shows_progress = false;
  write_text(kToLineStart);
}

/// What has no printable ASCII character is a question mark.
void say_without_memory(std::string_view message) {
  const std::lock_guard lock(console().mutex);
  wipe(console());
  write_text("neuroshard: ");
  for (const char c : message) {
    const char shown = c >= ' ' && c <= '~' ? c : '?';
    write_text({&shown, 1});
  }
  write_text("\n");
}

}  // namespace

void set_verbosity(Verbosity verbosity) {
  const std::lock_guard lock(console().mutex);
  console().verbosity = verbosity;
}

Verbosity verbosity() {
  const std::lock_guard lock(console().mutex);
  return console().verbosity;
}

void say(std::string_view lines) {
  const std::lock_guard lock(console().mutex);
  wipe(console());
  write_text(lines);
}

void say_error(std::string_view message) {
  try {
    say("neuroshard: " + neuroshard::printable(message) + "\n");
  } catch (const std::bad_alloc&) {  // what is said of it must not need any
    say_without_memory(message);
  }
}

void say_done(std::string_view lines) {
  if (verbosity() != Verbosity::quiet) say(lines);
}

void say_details(const std::vector<std::string>& lines) {
  if (verbosity() != Verbosity::verbose) return;
  for (const std::string& line : lines) say_error(line);
}

Terminal terminal() {
  Terminal found;
  const char* kind = std::getenv("TERM");
  const std::string_view name = kind == nullptr ? "" : kind;
  found.takes_lines_back = isatty(STDERR_FILENO) != 0 && !name.empty() && name != "dumb";
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) found.columns = size.ws_col;
  return found;
}

void show_progress(std::string_view text) {
  const std::lock_guard lock(console().mutex);
  console().shows_progress = true;
  write_text(std::string(kToLineStart).append(text));
}

void wipe_progress() {
  const std::lock_guard lock(console().mutex);
  wipe(console());
}

}  // namespace neuroshard::cli
