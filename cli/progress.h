// A line on the terminal that shows the progress of long work; silent without a terminal.
#pragma once

#include <string>

namespace neuroshard::cli {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Replaces the line; at most ten times a second.
  void show(const std::string& text);

 private:
  bool on_terminal_;
  bool shown_ = false;
  double last_seconds_ = -1.0;
};

}  // namespace neuroshard::cli
