// The progress line on stderr.
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "neuroshard/core/printable.h"

namespace neuroshard::cli {

ProgressLine::ProgressLine() : on_terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\n");
}

void ProgressLine::show(const std::string& text) {
  if (!on_terminal_) return;
  const double now =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (shown_ && now - last_seconds_ < 0.1) return;
  last_seconds_ = now;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{}", printable(text));
  std::fflush(stderr);
}

}  // namespace neuroshard::cli
