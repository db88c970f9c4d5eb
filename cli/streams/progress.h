// The progress of long work on stderr: on a terminal one line that is replaced, elsewhere a line
// every few seconds; none if quiet.
#pragma once

#include <cstddef>
#include <string>

#include "cli/streams/console.h"

namespace neuroshard::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  ///< takes the line away
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Replaces the line, at most ten times a second. Without a terminal it is a line of its own,
  /// after five seconds at first, later after a twentieth of the time that has passed, up to a
  /// minute: a log of hours can still be read.
  void show(const std::string& text);
  /// Likewise "12 of 50 planned, 8 s left", by the time since this line was made.
  void show_planned(std::size_t done, std::size_t all);

 private:
  Terminal terminal_;
  bool quiet_;
  bool shown_ = false;
  double first_seconds_;
  double last_seconds_;
};

}  // namespace neuroshard::cli
