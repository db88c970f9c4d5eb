// When a line of progress is due, and how much of it a terminal has room for.
#include "cli/streams/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "neuroshard/core/text/printable.h"
#include "neuroshard/core/units.h"

namespace neuroshard::cli {

namespace {

/// Between two lines where there is no terminal [s].
constexpr double kLeastBetweenLines = 5.0;
constexpr double kMostBetweenLines = 60.0;
constexpr double kShareBetweenLines = 0.05;  ///< of the time that has passed

/// Between two states of the line on a terminal [s].
constexpr double kBetweenStates = 0.1;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// As much of the text as a line of `columns` characters shows: what goes on in the next line
/// cannot be taken back. Characters of several bytes count as that many.
std::string cut_to(std::string text, std::size_t columns) {
  if (text.size() <= columns) return text;
  std::size_t end = columns;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text;
}

}  // namespace

ProgressLine::ProgressLine()
    : terminal_(terminal()),
      quiet_(verbosity() == Verbosity::quiet),
      first_seconds_(now_seconds()),
      last_seconds_(first_seconds_) {}

ProgressLine::~ProgressLine() {
  if (shown_) wipe_progress();
}

void ProgressLine::show(const std::string& text) {
  if (quiet_) return;
  const double now = now_seconds();
  const double since = now - last_seconds_;
  if (!terminal_.takes_lines_back) {
    const double between = std::clamp(kShareBetweenLines * (now - first_seconds_),
                                      kLeastBetweenLines, kMostBetweenLines);
    if (since < between) return;
    last_seconds_ = now;
    say(printable(text) + "\n");
    return;
  }
  if (shown_ && since < kBetweenStates) return;
  last_seconds_ = now;
  shown_ = true;
  show_progress(cut_to(printable(text), terminal_.columns - 1));
}

void ProgressLine::show_planned(std::size_t done, std::size_t all) {
  const double each = (now_seconds() - first_seconds_) / static_cast<double>(done);
  show(fmt::format("{} of {} planned, {} left", done, all,
                   format_seconds(each * static_cast<double>(all - done))));
}

}  // namespace neuroshard::cli
